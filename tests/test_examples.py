"""Running an example leaves the working tree as it was: its figure goes where git ignores it."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

pytest.importorskip("matplotlib")
ROOT = Path(__file__).parents[1]
EXAMPLES = [
    path for path in sorted((ROOT / "examples").glob("*.py")) if "FIGURE =" in path.read_text("utf-8")
]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_figures_go_where_git_ignores_them(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    folder = module.FIGURE.relative_to(ROOT).parts[0]
    assert f"{folder}/" in (ROOT / ".gitignore").read_text("utf-8").splitlines()


def test_make_demo_names_no_other_place():
    lines = (ROOT / "Makefile").read_text("utf-8").splitlines()
    recipe = lines[next(i for i, line in enumerate(lines) if line.startswith("demo:")) + 1]
    assert recipe.strip() == "$(PY) examples/demo.py"
