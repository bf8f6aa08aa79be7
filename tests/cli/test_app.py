"""The program: help, exit codes, errors, and what it imports."""

from __future__ import annotations

import ast
import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest
from cli_runner import one_sentence, run

import gpclass.cli
from gpclass import GaussianProcessClassifier


def test_errors_that_nobody_foresaw_are_one_sentence_too(folder, monkeypatch):
    def burst(*args, **options):
        raise RuntimeError("two\nlines")

    monkeypatch.setattr(GaussianProcessClassifier, "fit", burst)
    arguments = ("fit", folder / "mixed.csv", "-t", "ill", "-o", folder / "x.gpc")
    assert "RuntimeError: two lines" in one_sentence(run(*arguments, code=1))
    assert "Traceback" in run(*arguments, "--debug", code=1).stderr


@pytest.mark.parametrize("command", ["compare", "fit", "predict", "check", "plot", "info", "explore"])
def test_help_has_examples(command):
    text = run(command, "--help").stdout
    assert f"  gpclass {command}" in text
    assert max(map(len, text.splitlines())) <= 110


def process(*arguments):
    environment = {
        **os.environ,
        "PYTHONPATH": str(Path(gpclass.__file__).parents[1]),
        "OPENBLAS_NUM_THREADS": "1",
    }
    return subprocess.run(
        [sys.executable, *map(str, arguments)], capture_output=True, text=True, env=environment
    )


@pytest.mark.slow
def test_as_a_program(folder, tmp_path):
    table, model = folder / "moons.csv.gz", tmp_path / "m.gpc"
    done = process("-m", "gpclass", "fit", table, "-t", "y", "-o", model, "--inference", "laplace")
    assert done.returncode == 0, done.stderr
    assert "log evidence" in done.stdout
    assert done.stderr.splitlines() == [
        f"Wrote the model to {model} ({round(model.stat().st_size / 1e3)} kB)."
    ]
    assert "\x1b" not in done.stdout


def test_the_version_and_a_wrong_command():
    assert gpclass.__version__ in process("-m", "gpclass", "--version").stdout
    assert "nonsense" in run("nonsense", code=2).stderr


def test_help_imports_nothing_heavy():
    code = """
import sys
from gpclass.cli import main
try:
    main(["fit", "--help"])
except SystemExit as end:
    assert end.code == 0
print(*({"numpy", "scipy", "sklearn", "pandas", "matplotlib"} & set(sys.modules)), file=sys.stderr)
"""
    done = process("-c", code)
    assert "Usage" in done.stdout
    assert done.stderr == "\n"


@pytest.mark.parametrize(("module", "extra"), [("click", "cli")])
def test_a_missing_package_is_named(module, extra):
    done = process(
        "-c", f"import sys; sys.modules[{module!r}] = None; from gpclass.cli import main; main(['-h'])"
    )
    assert done.returncode == 1
    assert (
        done.stderr
        == f"The command line needs {module}: pip install {module} (the extra {extra!r} of gpclass has it).\n"
    )


@pytest.mark.parametrize(("module", "extra"), [("pandas", "cli"), ("matplotlib", "plot")])
def test_a_missing_package_is_named_when_a_command_needs_it(folder, monkeypatch, module, extra):
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.delitem(sys.modules, "gpclass.cli.tables", raising=False)
    arguments = ("predict", folder / "mixed.csv") if module == "pandas" else ("plot",)
    assert f"the extra {extra!r} of gpclass" in one_sentence(
        run(arguments[0], folder / "mixed.gpc", *arguments[1:], code=1)
    )


@pytest.mark.parametrize("option", ["inference", "likelihood", "multi-class", "hyperparameters"])
def test_help_names_the_defaults_of_the_classifier(option):
    default = inspect.signature(GaussianProcessClassifier).parameters[option.replace("-", "_")].default
    options = " ".join(run("fit", "--help").stdout.split("Options:")[1].split())
    assert f"[default: {default}]" in options.split(f" --{option} ")[1].split(" --")[0]


@pytest.mark.parametrize(
    ("option", "names"),
    [
        ("--inference", ["laplace", "ep", "vi", "mcmc", "rejection"]),
        ("--likelihood", ["probit", "logit", "softmax", "multiprobit"]),
        ("--kernel", ["rbf", "matern52", "linear", "neural-network"]),
        ("--multi-class", ["joint", "one_vs_rest", "one_vs_one"]),
    ],
)
def test_an_unknown_name_is_refused_with_a_list_of_the_known_ones(folder, option, names):
    text = one_sentence(run("fit", folder / "mixed.csv", "-t", "ill", option, "nonsense", code=1))
    assert all(repr(name) in text for name in ["nonsense", *names])


def test_only_public_names_of_the_library_are_used():
    for path in Path(gpclass.cli.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("gpclass"):
                names = [*node.module.split("."), *(alias.name for alias in node.names)]
                assert node.module.startswith("gpclass.cli") or node.module.count(".") <= 1, names
                assert not any(name.startswith("_") and name != "__version__" for name in names), names
