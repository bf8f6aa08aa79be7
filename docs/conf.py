"""How Sphinx builds these pages. Nothing is fetched here: `docs/mathjax.py` does that before, where it can."""

from __future__ import annotations

import functools
import importlib
import re
import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes

import gpclass

project = "gpclass"
author = "gpclass developers"
copyright = "2026, gpclass developers"
release = version = gpclass.__version__
HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # for figures.py

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "examples"]
templates_path = ["_templates"]
html_static_path = ["_static"]
html_css_files = ["pages.css"]
myst_enable_extensions = ["dollarmath", "amsmath", "deflist"]
myst_heading_anchors = 3
default_role = "py:obj"  # `compare` in a docstring links to its page

if (HERE / "_static" / "mathjax" / "tex-svg-full.js").exists():
    mathjax_path = "mathjax/tex-svg-full.js"
else:
    sys.stderr.write("MathJax is not in docs/_static: formulas will need a network (see docs/mathjax.py).\n")

autosummary_generate = True
autodoc_typehints = "none"  # the signature would repeat what the docstring's Parameters say
autodoc_member_order = "bysource"
numpydoc_show_class_members = False  # autodoc lists them, once

sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "subsection_order": [
        f"examples/{name}" for name in ("start", "tables", "inspection", "checks", "scale", "textbook")
    ],
    "within_subsection_order": "FileNameSortKey",
    "gallery_dirs": "gallery",
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
    "remove_config_comments": True,
    "nested_sections": False,
    "matplotlib_animations": False,
    "image_scrapers": ("figures.light_and_dark",),
    "reset_modules": ("figures.set_style",),
    "plot_gallery": "True",
    "abort_on_example_error": True,
    "run_stale_examples": True,  # what they print depends on the library, not only on the script
}

html_theme = "furo"
html_title = f"gpclass {release}"

# Names on a user's page that belong to pages under "Extending".
INTERNAL = {
    "gpclass.kernels": {
        "Covariances", "FormulaKernel", "Profile", "Stationary", "bind_columns", "default_kernel",
        "diag",
        "has_noise", "matrix", "move", "pullback", "pullback_diag", "register", "settable",
        "takes_vectors",
    },
    "gpclass.likelihoods": {"BinaryLikelihood", "ClassLikelihood"},
    "gpclass.mcmc": {"ChainState", "Draw", "Sampler"},
    "gpclass.data.sources": {"Rows", "Source"},
}  # fmt: skip


def skip_foreign(app: Any, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:
    """Leave out what other packages document, what other pages document, and methods that a base class documents."""
    if name.startswith("set_") and name.endswith("_request"):  # scikit-learn's, with links into its own pages
        return True
    if name.startswith(
        "hyperparameter_"
    ):  # specifications that scikit-learn asks for; the parameters are documented
        return True
    page = app.env.docname.removeprefix("generated/")
    if what == "module" and name in INTERNAL.get(page, ()):
        return True
    if what == "class" and page in INTERNAL and _overrides(obj):
        return True
    module = getattr(obj, "__module__", None) or "gpclass"
    return (
        True
        if (what == "module" or page == "gpclass.estimator") and not module.startswith("gpclass")
        else None
    )


def _overrides(obj: Any) -> bool:
    """Return whether a method overrides one of gpclass or of scikit-learn, whose page says what it does."""
    owner, _, name = getattr(obj, "__qualname__", "").rpartition(".")
    cls = getattr(sys.modules.get(getattr(obj, "__module__", ""), None), owner, None)
    return isinstance(cls, type) and any(hasattr(base, name) for base in cls.__mro__[1:-1])


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


@functools.cache
def public_names() -> dict[str, str]:
    """Return the full name of everything public that a page may mention; names that mean two things are left out."""
    modules = re.findall(r"^   (gpclass[\w.]*)$", (HERE / "api.md").read_text("utf-8"), re.MULTILINE)
    found: dict[str, set[str]] = {}
    for page in modules[: modules.index("gpclass.core.protocols")]:
        module = importlib.import_module(page)
        found.setdefault(page, set()).add(page)
        for name in getattr(
            module, "__all__", ["GaussianProcessClassifier"] if page.endswith("estimator") else []
        ):
            made = str(getattr(getattr(module, name), "__module__", ""))
            if made.startswith("gpclass") and name not in INTERNAL.get(page, ()):
                for short in (name, f"gpclass.{name}" if name in gpclass.__all__ else f"{page}.{name}"):
                    found.setdefault(short, set()).add(f"{page}.{name}")
    classifier = "gpclass.estimator.GaussianProcessClassifier"
    for name in dir(gpclass.GaussianProcessClassifier):
        if "_" in name.strip("_") and not name.startswith(("_", "set_")):  # not fit, score, save: too common
            found.setdefault(name, set()).add(f"{classifier}.{name}")
    found["bayes_decision"] = found["gpclass.bayes_decision"] = {"gpclass.decision.bayes_decision"}
    return {short: one for short, (one, *others) in ((k, sorted(v)) for k, v in found.items()) if not others}


def link_names(app: Any, doctree: nodes.document) -> None:
    """Make links of the public names that a page mentions as code."""
    if app.env.docname.startswith(("generated/", "gallery/")):
        return
    known = public_names()
    for literal in list(doctree.findall(nodes.literal)):
        text = re.match(r"[\w.]+", literal.astext())
        target = known.get(text.group().removeprefix("clf.").removeprefix("model.")) if text else None
        if target is None or isinstance(
            literal.parent, nodes.reference | addnodes.pending_xref | nodes.title
        ):
            continue
        options = {
            "refdomain": "py",
            "reftype": "obj",
            "reftarget": target,
            "refexplicit": True,
            "refwarn": False,
        }
        link = addnodes.pending_xref("", literal.deepcopy(), refdoc=app.env.docname, **options)
        literal.replace_self(link)


def setup(app: Any) -> None:
    app.connect("autodoc-skip-member", skip_foreign)
    app.connect("autodoc-process-docstring", escape_formulas, priority=100)  # before numpydoc
    app.connect("doctree-read", link_names)
