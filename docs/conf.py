"""How Sphinx builds these pages. Nothing is fetched here: `docs/mathjax.py` does that before, where it can."""

from __future__ import annotations

import functools
import importlib
import logging
import re
import shutil
import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes

import gpclass

console = logging.StreamHandler()
console.setLevel(logging.WARNING)
logging.basicConfig(handlers=[console])  # before a package of colours asks for the log of everything

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
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "examples"]
templates_path = ["_templates"]
html_static_path = ["_static"]
html_css_files = ["pages.css"]
myst_enable_extensions = ["dollarmath", "amsmath", "deflist"]
myst_heading_anchors = 3
default_role = "py:obj"  # `compare` in a docstring links to its page
nitpicky = True  # a name in a docstring that leads nowhere is an error
nitpick_ignore_regex = [
    ("py:class", ".*"),  # bases
    ("py:obj", r"(sklearn|scipy)\..*"),
    ("py:obj", r"([\w.]+\.)?[A-Z_]+"),  # constants beside the docstring
]
copybutton_prompt_text = r">>> |\.\.\. |\$ "  # what is copied are the commands, without prompts and output
copybutton_prompt_is_regexp = True

if (HERE / "_static" / "mathjax" / "tex-svg-full.js").exists():
    mathjax_path = "mathjax/tex-svg-full.js"
else:
    sys.stderr.write("MathJax is not in docs/_static: formulas will need a network (see docs/mathjax.py).\n")

autosummary_generate = True
shutil.rmtree(HERE / "generated", ignore_errors=True)  # pages of names that are gone
# The pages of the guide that explain a name, or all names of a module: links at the top of their pages.
autosummary_context = {
    "guides": {
        "gpclass.GaussianProcessClassifier": ["choosing", "learning", "prediction", "from_sklearn"],
        "gpclass.DoubtfulFitWarning": ["evidence"],
        "gpclass.compare": ["comparing"],
        "gpclass.bayes_decision": ["prediction"],
        "gpclass.load": ["files"],
        "gpclass.to_onnx": ["files"],
        "gpclass.active": ["active"],
        "gpclass.comparison": ["comparing"],
        "gpclass.core.hyperpriors": ["kernels"],
        "gpclass.data.sources": ["scale"],
        "gpclass.effects": ["why"],
        "gpclass.evidence": ["evidence"],
        "gpclass.inference.Dirichlet": ["dirichlet"],
        "gpclass.inference.EP": ["ep"],
        "gpclass.inference.Laplace": ["laplace"],
        "gpclass.inference.VI": ["variational"],
        "gpclass.kernels": ["kernels"],
        "gpclass.likelihoods": ["likelihoods"],
        "gpclass.mcmc": ["mcmc"],
        "gpclass.onnx": ["files"],
        "gpclass.persistence": ["files"],
        "gpclass.plotting.ComparisonDisplay": ["comparing"],
        "gpclass.plotting.EffectDisplay": ["why"],
        "gpclass.plotting.EvidenceDisplay": ["learning"],
        "gpclass.plotting.ImportanceDisplay": ["why"],
        "gpclass.plotting.LatentDisplay": ["prediction"],
        "gpclass.plotting.PredictiveContourDisplay": ["prediction"],
        "gpclass.plotting.TraceDisplay": ["mcmc"],
        "gpclass.sampling": ["sampling"],
        "gpclass.sparse": ["scale"],
        "gpclass.tables": ["tables"],
        "gpclass.testing": ["extending"],
    }
}
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
    "backreferences_dir": "gallery/backreferences",  # examples by class, for "Used in" on its page
    "doc_module": ("gpclass",),
    "reference_url": {"gpclass": None},
}

html_theme = "furo"
html_title = f"gpclass {release}"


def skip_foreign(app: Any, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:
    """Leave out what other packages document, and methods that a base class documents."""
    # scikit-learn's, with links into its own pages, and specifications that it asks for
    if (name.startswith("set_") and name.endswith("_request")) or name.startswith("hyperparameter_"):
        return True
    module = getattr(obj, "__module__", None) or "gpclass"
    foreign = what in ("module", "class") and not module.startswith("gpclass")
    return True if foreign or (what == "class" and _overrides(obj)) else None


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
    """Return the documented name of everything that a page may mention; names that mean two things are left out."""
    found: dict[str, set[str]] = {}
    for page in (HERE / "api.md", HERE / "guide" / "extending.md"):
        for full in re.findall(r"^   (gpclass\.[\w.]+)$", page.read_text("utf-8"), re.MULTILINE):
            home, _, name = full.rpartition(".")
            real = getattr(getattr(importlib.import_module(home), name, None), "__module__", home)
            for known in (full, name, f"{home}.{name}", f"{real}.{name}"):
                found.setdefault(known, set()).add(full)
    classifier = "gpclass.GaussianProcessClassifier"
    for name in dir(gpclass.GaussianProcessClassifier):
        if "_" in name.strip("_") and not name.startswith(("_", "set_")):  # not fit, score, save: too common
            found.setdefault(name, set()).add(f"{classifier}.{name}")
    return {short: one for short, (one, *others) in ((k, sorted(v)) for k, v in found.items()) if not others}


@functools.cache
def internal_names() -> dict[str, str]:
    """Return the documented names of what the modules at the end of "Extending" define, by their last part."""
    modules = (full for full in public_names().values() if full in sys.modules)
    made = ((module, name, obj) for module in modules for name, obj in vars(sys.modules[module]).items())
    return {name: f"{home}.{name}" for home, name, obj in made if getattr(obj, "__module__", None) == home}


def find_short_name(app: Any, env: Any, node: Any, contnode: Any) -> nodes.reference | None:
    """Resolve a name in a docstring that is documented under another module, such as `Laplace` or `predict`."""
    if node.get("refdomain") != "py":
        return None
    name = node["reftarget"].removeprefix("~").removeprefix("GaussianProcessClassifier.")
    method = (
        f"gpclass.GaussianProcessClassifier.{name}"
        if hasattr(gpclass.GaussianProcessClassifier, name)
        else None
    )
    known = public_names().get(name) or method or internal_names().get(name.rpartition(".")[2])
    domain = env.get_domain("py")
    return known and domain.resolve_xref(env, node["refdoc"], app.builder, "obj", known, node, contnode)


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
    app.connect("missing-reference", find_short_name)
