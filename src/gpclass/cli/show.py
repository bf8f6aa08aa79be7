"""``gpclass check``, ``plot`` and ``info``: what a model file contains."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from gpclass.cli import output
from gpclass.cli.encoding import Rule
from gpclass.cli.modelfile import Model, read_model
from gpclass.kernels import CompoundKernel


def check(given: Mapping[str, Any]) -> None:
    """Measure the error of the approximation and report it."""
    model = read_model(given["model"])
    with output.progress("checking"):
        found = model.clf.check_approximation(n_samples=given["draws"], random_state=given["seed"])
    checks = found if isinstance(found, list) else [found]
    if given["as_json"]:
        documents = [asdict(one) for one in checks]
        output.show_json(documents if isinstance(found, list) else documents[0])
        return
    for i, one in enumerate(checks):
        if len(checks) > 1:
            output.line(f"{chr(10) if i else ''}model {i + 1} of {len(checks)}")
        output.line(str(one))


def plot(given: Mapping[str, Any]) -> None:
    """Draw a figure of the model."""
    from gpclass.cli.figures import check_path, model_figure, save_figure

    path = given["output"] or f"{os.path.splitext(given['model'])[0]}.png"
    check_path(path)
    model = read_model(given["model"])
    with output.progress("drawing"):
        save_figure(model_figure(model, given["kind"], given["top"]), path)
    if given["as_json"]:
        output.show_json({"figure": path})
    else:
        output.remark(f"Wrote the figure to {path}.")


def info(given: Mapping[str, Any]) -> None:
    """Show what the model contains."""
    path = given["model"]
    model = read_model(path)
    document = describe(path, model)
    if given["as_json"]:
        output.show_json(document)
        return
    show_facts(document)
    output.line()
    rows = [(rule.name, rule.kind, _how(rule), rule.fill or "") for rule in model.encoding.rules]
    output.show_table(("column", "kind", "encoding", "missing value"), rows)


def describe(path: str, model: Model) -> dict[str, Any]:
    """Return all that is known about a model."""
    clf, kernel = model.clf, model.clf.kernel_
    evidence, loo = clf.log_marginal_likelihood_value_, getattr(clf, "loo_log_score_", None)
    kernels = kernel.kernels if isinstance(kernel, CompoundKernel) else [kernel]
    return {
        "model": path,
        "kilobytes": round(os.path.getsize(path) / 1e3),
        **model.about,
        "classes": clf.classes_.tolist(),
        "inference": str(clf.inference),
        "likelihood": str(clf.likelihood),
        "multi_class": clf.multi_class if clf.n_classes_ > 2 else None,
        "kernel": " | ".join(map(str, kernels)),
        "log_evidence": None if evidence is None else float(evidence),
        "leave_one_out_log_loss": None if loo is None else -float(loo),
        **model.encoding.to_json(),
    }


def show_facts(known: Mapping[str, Any]) -> None:
    """Write what `describe` returned, one line per fact."""
    facts = {**known, "columns": len(known["columns"]), **(known.get("scores") or {}), "scores": None}
    output.show_facts({name.replace("_", " "): value for name, value in facts.items()})


def _how(rule: Rule) -> str:
    if rule.kind == "number":
        return f"(x - {rule.mean:.6g}) / {rule.scale:.6g}"
    if rule.kind == "boolean":
        return "0 false, 1 true"
    words = ", ".join(rule.categories)
    return f"{words}: 0, 1" if len(rule.categories) == 2 else f"a column each: {words}"
