"""``gpclass check``, ``info`` and ``plot``: what a model file has in it."""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import Any

from gpclass.cli import output
from gpclass.cli.encoding import Rule
from gpclass.cli.figure import check_path, model_figure, save_figure
from gpclass.cli.fit import kernel_text, score_facts
from gpclass.cli.modelfile import Model, read_model


def check(path: str, *, draws: int, seed: int, as_json: bool) -> None:
    """Measure how wrong the approximation is, and say so."""
    model = read_model(path)
    with output.waiting("checking"):
        found = model.clf.check_approximation(n_samples=draws, random_state=seed)
    checks = found if isinstance(found, list) else [found]
    if as_json:
        output.show_json([asdict(one) for one in checks] if isinstance(found, list) else asdict(found))
        return
    for i, one in enumerate(checks):
        if len(checks) > 1:
            output.line(f"{chr(10) if i else ''}model {i + 1} of {len(checks)}")
        output.line(str(one))


def plot(path: str, *, kind: str, figure: str | None, n_top: int | None, as_json: bool) -> None:
    """Draw the display that fits the model."""
    figure = figure or f"{os.path.splitext(path)[0]}.png"
    check_path(figure)
    model = read_model(path)
    with output.waiting("drawing"):
        save_figure(model_figure(model, kind, n_top), figure)
    if as_json:
        output.show_json({"figure": figure})
    else:
        output.remark(f"The figure is in {figure}.")


def info(path: str, *, as_json: bool) -> None:
    """Say what is in the model."""
    model = read_model(path)
    clf, about = model.clf, model.about
    evidence, loo = clf.log_marginal_likelihood_value_, getattr(clf, "loo_log_score_", None)
    facts = {
        "classes": clf.classes_.tolist(),
        "inference": _name(clf.inference),
        "likelihood": _name(clf.likelihood),
        "multi_class": clf.multi_class if clf.n_classes_ > 2 else None,
        "kernel": kernel_text(clf.kernel_),
        "log_evidence": None if evidence is None else float(evidence),
        "leave_one_out_log_loss": None if loo is None else -float(loo),
    }
    if as_json:
        columns = [asdict(rule) for rule in model.encoding.rules]
        output.show_json(
            {"model": path, **about, **facts, "target": model.encoding.target, "columns": columns}
        )
        return
    _show(path, model, facts)


def _name(value: Any) -> str:
    return value if isinstance(value, str) else repr(value)


def _show(path: str, model: Model, facts: dict[str, Any]) -> None:
    about = model.about
    evidence, loo = facts["log_evidence"], facts["leave_one_out_log_loss"]
    output.show_facts(
        {
            "model": f"{path}, {os.path.getsize(path) / 1e3:.0f} kB",
            "made by": f"gpclass {about['gpclass']}, {about['date']}" if "gpclass" in about else None,
            "training rows": f"{about['training_rows']} of {about['data']}" if "data" in about else None,
            "target": model.encoding.target,
            "classes": ", ".join(map(str, facts["classes"])),
            "inference": f"{facts['inference']}, {facts['likelihood']} likelihood",
            "several classes": facts["multi_class"],
            "kernel": facts["kernel"],
            "log evidence": None if evidence is None else f"{evidence:.3f}",
            "leave-one-out": None if loo is None else f"log loss {loo:.4f}",
            **score_facts(about),
        }
    )
    output.line()
    rows = [(rule.name, rule.kind, _how(rule), rule.fill or "") for rule in model.encoding.rules]
    output.show_table(("column", "kind", "encoding", "missing is"), rows, left=4)


def _how(rule: Rule) -> str:
    if rule.kind == "number":
        return f"(x - {rule.mean:.6g}) / {rule.scale:.6g}"
    if rule.kind == "boolean":
        return "0 false, 1 true"
    words = ", ".join(rule.categories)
    return f"{words}: 0, 1" if len(rule.categories) == 2 else f"a column each: {words}"
