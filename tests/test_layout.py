"""The layout holds: imports go downward, optional packages load late, files and functions stay short."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "gpclass"
FILES = sorted(PACKAGE.rglob("*.py"))

# A module may import gpclass modules that stand before its own layer, and no others.
LAYERS = [
    "core",
    "kernels",
    "likelihoods",
    "posteriors",
    "priors",
    "inference",
    "mcmc",
    "sampling",
    "evidence",
    "decision",
    "validation",
    "data",
    "tables",
    "sparse",
    "learning",
    "effects",
    "explanations",
    "parameters",
    "tasks",
    "fitted",
    "estimator",
    "active",
    "plotting",
    "comparison",
    "persistence",
    "onnx",
    "datasets",
    "testing",
    "explore",
    "cli",
    "__main__",
]
STRANGERS = {frozenset({"kernels", "likelihoods"})}  # pairs of layers that must not know each other
DOORS = {("fitted", "persistence")}  # a method, for convenience, of what stands on the estimator
OPTIONAL = {
    "arviz",
    "arviz_base",
    "arviz_plots",
    "arviz_stats",
    "bokeh",
    "click",
    "contourpy",
    "dask",
    "distributed",
    "matplotlib",
    "mpl_toolkits",
    "onnx",
    "onnxruntime",
    "openpyxl",
    "pandas",
    "polars",
    "psutil",
    "pyarrow",
    "safetensors",
    "tornado",
}
MAX_FILE_LINES, MAX_FUNCTION_LINES, MAX_MODULES_AT_THE_TOP = 400, 60, 10


def dotted(path: Path) -> str:
    """Return the module's name within gpclass: 'kernels.stationary', 'kernels', or '' for gpclass itself."""
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix("__init__").rstrip(".")


def methods() -> set[str]:
    """Return the files of inference/ that define a method, which must not know one another."""
    paths = (PACKAGE / "inference").glob("*.py")
    return {path.stem for path in paths if "(Method)" in path.read_text("utf-8")}


METHODS = methods()


def imported(node: ast.AST) -> list[str]:
    """Return the full dotted names that one node imports; a relative import keeps its dots."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        return ["." * node.level + f"{node.module or ''}.{alias.name}" for alias in node.names]
    return []


def import_errors(module: str, source: str) -> Iterator[str]:
    """Yield a sentence for each import in ``source`` that the module of that name may not have."""
    layer, _, inner = module.partition(".")
    for node in ast.walk(ast.parse(source)):
        for name in imported(node):
            root, _, target = name.partition(".")
            where = f"gpclass.{module}, line {node.lineno}"  # type: ignore[attr-defined]
            if root == "":
                yield f"{where}: the import {name} is relative; write it as an absolute import."
            if root != "gpclass" or module == "" or target == "__version__":
                continue
            other, _, rest = target.partition(".")
            if other not in LAYERS:
                yield (
                    f"{where}: {name} is not in the import order; import from the module that defines it, "
                    "or, if the module is new, add it to LAYERS in tests/test_layout.py."
                )
            elif other == layer:
                both = {inner.split(".")[0], rest.split(".")[0]} & METHODS
                if layer == "inference" and len(both) > 1:
                    yield f"{where}: inference methods must not import one another."
            elif (layer, other) in DOORS:
                continue
            elif LAYERS.index(other) > LAYERS.index(layer):
                yield f"{where}: {other} stands after {layer}; imports go downward only."
            elif frozenset({other, layer}) in STRANGERS:
                yield f"{where}: {layer} and {other} must not know each other."


def module_level(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes that run at import: not the bodies of functions, not what is for type checkers only."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(child, ast.If) and ast.unparse(child.test) in {"TYPE_CHECKING", "typing.TYPE_CHECKING"}:
            continue
        yield child
        yield from module_level(child)


def early_optional(source: str) -> list[str]:
    """Return the optional packages that ``source`` would load when imported."""
    roots = [name.split(".")[0] for node in module_level(ast.parse(source)) for name in imported(node)]
    return [root for root in roots if root in OPTIONAL]


def code_lines(function: ast.FunctionDef | ast.AsyncFunctionDef, lines: list[str]) -> int:
    """Count the lines of a function without its docstring, comments and blank lines."""
    skipped: set[int] = set()
    if ast.get_docstring(function, clean=False) is not None:
        skipped.update(range(function.body[0].lineno, (function.body[0].end_lineno or 0) + 1))
    body = range(function.lineno, (function.end_lineno or 0) + 1)
    return sum(i not in skipped and lines[i - 1].strip()[:1] not in {"", "#"} for i in body)


def test_few_modules_stand_at_the_top():
    modules = [path.stem for path in PACKAGE.glob("*.py") if not path.stem.startswith("__")]
    assert len(modules) <= MAX_MODULES_AT_THE_TOP, f"{sorted(modules)}: put some of them into a package."


def test_methods_of_inference_are_found():
    assert {"laplace", "ep", "variational"} <= METHODS
    assert "newton" not in METHODS


@pytest.mark.parametrize("path", FILES, ids=dotted)
class TestEveryFile:
    def test_stands_in_a_layer(self, path):
        layer = dotted(path).partition(".")[0]
        assert layer in {"", *LAYERS}, (
            f"gpclass.{layer} has no place in the import order; add it to LAYERS in tests/test_layout.py."
        )

    def test_imports_go_downward(self, path):
        if dotted(path).partition(".")[0] in {"", *LAYERS}:  # else the test above has said what to do
            errors = list(import_errors(dotted(path), path.read_text("utf-8")))
            assert not errors, "\n".join(errors)

    def test_optional_packages_load_late(self, path):
        early = early_optional(path.read_text("utf-8"))
        if dotted(path).startswith("cli."):  # which `gpclass.cli.main` imports when a command runs
            early = [name for name in early if name not in ("click", "pandas")]
        assert not early, (
            f"{path.name} loads {', '.join(early)} at import; move it into the function using it."
        )

    def test_is_short(self, path):
        n_lines = len(path.read_text("utf-8").splitlines())
        assert n_lines <= MAX_FILE_LINES, f"{path.name} has {n_lines} lines; split it by what its parts do."

    def test_functions_are_short(self, path):
        source = path.read_text("utf-8")
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                n_lines = code_lines(node, source.splitlines())
                assert n_lines <= MAX_FUNCTION_LINES, f"{path.name}: {node.name} has {n_lines} lines of code."


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("core.linalg", "from gpclass.kernels import RBF"),
        ("core.linalg", "def f():\n    import gpclass.kernels.stationary"),
        ("core.linalg", "if TYPE_CHECKING:\n    from gpclass import kernels"),
        ("likelihoods.logit", "from gpclass.kernels.base import matrix"),
        ("kernels", "from gpclass.likelihoods import Logit"),
        ("inference.ep", "from gpclass.inference.laplace import Laplace"),
        ("inference.ep", "from gpclass.inference import laplace"),
        ("estimator", "from gpclass import GaussianProcessClassifier"),
        ("estimator", "from gpclass.novelty import thing"),
        ("kernels.stationary", "from .base import matrix"),
        ("kernels.stationary", "from . import base"),
    ],
)
def test_forbidden_imports_are_found(module, source):
    assert len(list(import_errors(module, source))) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("", "from gpclass.estimator import GaussianProcessClassifier"),
        ("kernels.stationary", "from gpclass.kernels.base import matrix\nfrom gpclass.core import linalg"),
        ("inference", "from gpclass.inference.ep import EP\nfrom gpclass.inference.laplace import Laplace"),
        ("inference.ep", "from gpclass.inference.newton import iterate\nimport gpclass.core.protocols"),
        ("persistence", "from gpclass import __version__"),
        ("core.linalg", "import numpy as np\nfrom scipy.linalg import lapack"),
    ],
)
def test_allowed_imports_pass(module, source):
    assert not list(import_errors(module, source))


def test_optional_packages_are_found_at_module_level_only():
    late = "import numpy\nif TYPE_CHECKING:\n    import pandas\ndef f():\n    import polars"
    assert not early_optional(late)
    assert early_optional("class A:\n    import dask.array") == ["dask"]
    assert early_optional("try:\n    from matplotlib import cm\nexcept ImportError: ...") == ["matplotlib"]


def test_code_lines_leave_out_prose():
    source = 'def f():\n    """One.\n\n    Two.\n    """\n    # why\n\n    a = 1\n    return a\n'
    function = ast.parse(source).body[0]
    assert isinstance(function, ast.FunctionDef)
    assert code_lines(function, source.splitlines()) == 3


def test_no_assert_is_left_for_a_user_to_meet():
    """An impossible value is an error in one sentence, or cannot arise; the checks of gpclass.testing do assert."""
    found = {
        f"{dotted(path)}, line {node.lineno}"
        for path in FILES
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Assert) and not dotted(path).startswith("testing")
    }
    assert not found


def test_tests_mirror_the_source():
    """A test file in a package is named after its module; tests of several modules together are in tests/ itself."""
    here = Path(__file__).parent
    tests = [path.relative_to(here) for path in here.glob("*/**/test_*.py")]
    assert tests
    strays = [str(t) for t in tests if not (PACKAGE / t.with_name(t.name.removeprefix("test_"))).exists()]
    assert not strays, "Name these after a module in the same package, or move them to tests/."
