"""``gpclass check`` and ``info``: what a model file contains, and whether it can be trusted."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict
from math import isfinite
from typing import Any

from gpclass.cli import output
from gpclass.cli.modelfile import Model, read_model
from gpclass.kernels import CompoundKernel


def check(given: Mapping[str, Any]) -> None:
    """Measure the error of the approximation and report it."""
    model = read_model(given["model"])
    found = model.clf.check_approximation(n_samples=given["draws"], random_state=given["seed"])
    several = isinstance(found, list)
    if given["as_json"]:
        output.show_json([asdict(one) for one in found] if several else asdict(found))
    elif several:
        output.paragraph("\n\n".join(f"model {i}\n{one}" for i, one in enumerate(found, start=1)))
    else:
        output.paragraph(str(found))


def info(given: Mapping[str, Any]) -> None:
    """Show what the model contains."""
    model = read_model(given["model"])
    document = describe(given["model"], model)
    if given["as_json"]:
        output.show_json(document)
        return
    show_facts(document)
    output.line()
    rows = [(each["name"], each["kind"], *_coded(each)) for each in model.columns]
    output.show_table(("column", "kind", "levels", "missing value"), rows)
    if compared := document["compared_models"]:
        output.line()
        models = [(each["model"], str(each["n_rows"]), _integrated(each["value"])) for each in compared]
        output.show_table(("compared model", "rows", "integrated evidence"), models)


def _coded(column: Mapping[str, Any]) -> tuple[str, str]:
    """Return the levels of a column, and what a missing value becomes."""
    levels, fill = column["levels"], column["fill"]
    known = ", ".join(str(level) for level in levels if level is not None)
    if not column["positions"]:
        return f"{known} (constant, not used)".strip(), ""
    if levels:
        return known, "a level" if None in levels else "unknown level"
    return "", "" if fill is None else f"{fill:g}" + ", marked" * (column["scale"] is not None)


def _integrated(value: float) -> str:
    return f"{value:.2f}" if isfinite(value) else "cannot be the largest"


def describe(path: str, model: Model) -> dict[str, Any]:
    """Return all information about a model."""
    clf, kernel = model.clf, model.clf.kernel_
    evidence, loo = clf.log_marginal_likelihood_value_, getattr(clf, "loo_log_score_", None)
    kernels = kernel.kernels if isinstance(kernel, CompoundKernel) else [kernel]
    compared = clf.compared_ if isinstance(clf.compared_, list) else [clf.compared_]
    return {
        "model": path,
        "kilobytes": round(os.path.getsize(path) / 1e3),
        **model.about,
        "classes": clf.classes_.tolist(),
        "inference": repr(clf.inference_),
        "likelihood": repr(getattr(clf.base_estimator_, "likelihood", clf.likelihood)),
        "multi_class": clf.multi_class if clf.n_classes_ > 2 else None,
        "kernel": " | ".join(map(str, kernels)),
        "log_evidence": None if evidence is None else float(evidence),
        "leave_one_out_log_loss": None if loo is None else -float(loo),
        "compared_models": [asdict(each) for part in compared for each in part],
        "target": model.target,
        "columns": model.columns,
    }


def show_facts(known: Mapping[str, Any]) -> None:
    """Write what `describe` returned, one line per fact; a value that does not exist is left out."""
    facts = {**known, "columns": len(known["columns"]), **(known.get("scores") or {}), "scores": None}
    facts["compared_models"] = len(known["compared_models"]) or None
    shown = {name.replace("_", " "): value for name, value in facts.items() if value not in (None, "")}
    output.show_table(("", ""), [(name, _text(value)) for name, value in shown.items()])


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return f"{value:.4f}" if isinstance(value, float) else str(value)
