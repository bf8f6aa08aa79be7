"""How Sphinx builds these pages. Nothing is fetched: the build works without a network."""

from __future__ import annotations

import re
from typing import Any

import gpclass

project = "gpclass"
author = "gpclass developers"
copyright = "2026, gpclass developers"
release = version = gpclass.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
]
exclude_patterns = ["_build"]
templates_path = ["_templates"]
myst_enable_extensions = ["dollarmath", "amsmath", "deflist"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "none"  # the signature would repeat what the docstring's Parameters say
autodoc_member_order = "bysource"
numpydoc_show_class_members = False  # autodoc lists them, once

html_theme = "furo"
html_title = f"gpclass {release}"


def skip_foreign(app: Any, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:
    """Leave out names that other packages document: scikit-learn's kernels, which ours re-exports."""
    if name.startswith("set_") and name.endswith("_request"):  # scikit-learn's, with links into its own pages
        return True
    if name.startswith(
        "hyperparameter_"
    ):  # specifications that scikit-learn asks for; the parameters are documented
        return True
    module = getattr(obj, "__module__", None) or "gpclass"
    return True if what == "module" and not module.startswith("gpclass") else None


def escape_formulas(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Escape the bars and asterisks of formulas, as in p(y|f), |x - z| and (n, *shape), which are markup otherwise."""
    math = False
    for i, line in enumerate(lines):
        if line.strip() == "Examples":
            break
        math = line.lstrip().startswith(".. math::") or (math and (not line or line.startswith(" ")))
        if math:
            continue
        parts = re.split(r"(`+[^`]*`+)", line)  # literals stay as they are
        parts[::2] = [re.sub(r"[|]|[*](?=\w+[)])", r"\\\g<0>", part) for part in parts[::2]]
        lines[i] = "".join(parts)


def setup(app: Any) -> None:
    app.connect("autodoc-skip-member", skip_foreign)
    app.connect("autodoc-process-docstring", escape_formulas, priority=100)  # before numpydoc
