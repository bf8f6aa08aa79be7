"""Numbers that steer learning and inference: few, named, and each with its unit or its reason."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "gpclass"
LEARNING = (
    "choice",
    "initial",
    "ladder",
    "maximise",
    "problem",
    "run",
    "passes",
    "strategies",
)
SPARSE = ("settings",)
FILES = [
    *(SOURCE / "learning" / f"{name}.py" for name in LEARNING),
    *(SOURCE / "sparse" / f"{name}.py" for name in SPARSE),
    SOURCE / "core" / "optimisers.py",
    SOURCE / "core" / "hyperpriors.py",
]
INFERENCE = [*sorted((SOURCE / "inference").glob("*.py")), SOURCE / "sparse" / "engine.py"]
GROUPS = {
    "learning": (FILES, 60),
    "inference": (INFERENCE, 64),
}  # files, and how many numbers they have at most
ARITHMETIC = {0.0, 1.0, 2.0, 3.0, 0.5}  # counts, halves and signs of formulas
TINY = 1e-10  # a smaller number only keeps a division or a logarithm finite


def numbers(node):
    """Return the numbers in a piece of code, without those of formulas and rounding."""
    found = (n for n in ast.walk(node) if isinstance(n, ast.Constant))
    values = (n for n in found if isinstance(n.value, int | float) and not isinstance(n.value, bool))
    return [n for n in values if abs(n.value) not in ARITHMETIC and abs(n.value) > TINY]


def named(tree):
    """Return the module-level assignments of numbers."""
    kinds = (ast.Assign, ast.AnnAssign)
    return [
        n for n in tree.body if isinstance(n, kinds) and n.value and (numbers(n.value) or is_number(n.value))
    ]


def is_number(value):
    return isinstance(value, ast.Constant) and isinstance(value.value, int | float)


def settings(tree):
    """Return the defaults of fields of settings, which a user can change and the documentation explains."""
    fields = (n for c in ast.walk(tree) if isinstance(c, ast.ClassDef) for n in c.body)
    return [n for n in fields if isinstance(n, ast.AnnAssign) and n.value and numbers(n.value)]


def inline(tree):
    """Return the numbers that stand inside functions and have no name."""
    known = {id(each) for node in [*named(tree), *settings(tree)] for each in numbers(node)}
    return [each for each in numbers(tree) if id(each) not in known]


def tree_of(path):
    return ast.parse(path.read_text("utf-8"))


@pytest.mark.parametrize("group", GROUPS)
def test_there_are_few(group):
    files, most = GROUPS[group]
    trees = {path.stem: tree_of(path) for path in files}
    counts = {name: len(named(tree) + settings(tree) + inline(tree)) for name, tree in trees.items()}
    assert sum(counts.values()) <= most, counts


@pytest.mark.parametrize("path", FILES + INFERENCE, ids=lambda path: path.stem)
def test_each_says_what_it_is(path):
    lines = path.read_text("utf-8").splitlines()
    for node in named(tree_of(path)):
        text = " ".join(lines[node.lineno - 1 : node.end_lineno])
        assert "#" in text or lines[node.lineno - 2].startswith("#"), (
            f"{path.name}:{node.lineno} has no reason"
        )


def test_a_number_without_a_name_is_counted():
    tree = ast.parse("LIMIT = 7\ndef f(x):\n    return 0.5 * x + 0.37 + 1e-300\n")
    assert len(named(tree)) == 1
    assert [each.value for each in inline(tree)] == [0.37]
