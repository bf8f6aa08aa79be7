"""The classification problem described by a table and the options of a command, and its splits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpclass.cli.files import InputError, named
from gpclass.cli.tables import read_table

FEW = 20  # number of classes that is accepted for any number of rows


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """The input columns of a table, the labels, and the columns that the user names as categories."""

    frame: Any
    y: Any
    categorical: list[str]


def read_problem(given: Mapping[str, Any]) -> Problem:
    """Read a file and return the problem."""
    path, target, n = given["data"], given["target"], given["rows"]
    frame = read_table(path, given, text=[target])
    features = _features(path, frame, given)
    y = labels_of(path, frame, target)
    frame = frame[features]
    if n is not None and n < len(frame):
        chosen, _ = _split(y, f"--rows {n}", given["seed"], train_size=n)
        frame, y = frame.iloc[chosen], y[chosen]
    return Problem(frame, y, list(given["categorical"]))


def check_columns(path: str, frame: Any, names: Iterable[str]) -> None:
    """Raise unless a table has columns of these names."""
    if missing := [name for name in names if name not in frame]:
        noun = "column" if len(missing) == 1 else "columns"
        raise InputError(f"{path} has no {noun} {named(missing)}: its columns are {named(frame, 12)}.")


def _features(path: str, frame: Any, given: Mapping[str, Any]) -> list[str]:
    target, columns, drop, categorical = (given[k] for k in ("target", "columns", "drop", "categorical"))
    check_columns(path, frame, (target, *columns, *drop, *categorical))
    if target in columns:
        raise InputError(f"The target {target!r} is among --columns: it cannot predict itself.")
    chosen = dict.fromkeys(columns) or [name for name in frame if name != target]
    features = [name for name in chosen if name not in drop]
    if not features:
        raise InputError(f"{path} has no column to learn from besides the target {target!r}.")
    if unused := [name for name in categorical if name not in features]:
        raise InputError(
            f"--categorical names {named(unused)}, which is not among the columns that are used."
        )
    return features


def labels_of(path: str, frame: Any, target: str) -> Any:
    """Return the labels in a column: integers if all are whole numbers, otherwise texts."""
    import pandas as pd

    column = frame[target]
    gaps = column.isna()
    if gaps.any():
        raise InputError(
            f"{path} has no label in row {int(gaps.idxmax()) + 1}, column {target!r}: drop such rows."
        )
    texts = column.astype(str).str.strip()
    values = pd.to_numeric(texts, errors="coerce").to_numpy(dtype=float)
    whole = bool(np.all((np.abs(values) < 2**53) & (values == np.floor(values))))
    y = values.astype(np.int64) if whole else texts.to_numpy(dtype=str)
    classes = np.unique(y)
    if len(classes) == 1:
        raise InputError(
            f"{path} has only the class {str(classes[0])!r} in column {target!r}, expected two or more."
        )
    fractions = not whole and not np.isnan(values).any()
    if len(classes) > max(FEW, len(y) // 5) or (len(classes) > 2 and fractions):
        raise InputError(
            f"{path} has {len(classes)} different values in {len(y)} rows of the target {target!r}, "
            "which looks like a measurement rather than a class: name another column."
        )
    return y


def held_out(y: Any, share: float, seed: int) -> tuple[Any, Any]:
    """Return the rows to fit and the rows to score, stratified by class."""
    return _split(y, f"--test-fraction {share:g}", seed, test_size=share)


def _split(y: Any, option: str, seed: int, **size: Any) -> tuple[Any, Any]:
    from sklearn.model_selection import train_test_split

    try:
        one, other = train_test_split(np.arange(len(y)), stratify=y, random_state=seed, **size)
    except ValueError:
        counts = np.unique(y, return_counts=True)[1]
        raise InputError(
            f"{option} is not possible with {len(y)} rows of {len(counts)} classes, {counts.min()} of them "
            "in the smallest class, because every class needs a row in both parts."
        ) from None
    return np.sort(one), np.sort(other)


def folds(y: Any, cv: int, seed: int) -> list[tuple[Any, Any]]:
    """Return the rows to fit and to score in each fold of a cross-validation."""
    from sklearn.model_selection import StratifiedKFold

    codes, counts = np.unique(y, return_inverse=True, return_counts=True)[1:]
    if cv > counts.min():
        raise InputError(
            f"Cross-validation with {cv} folds needs {cv} rows per class, and one class has {counts.min()}: "
            "give fewer folds with --cv, or --test-fraction."
        )
    return list(StratifiedKFold(cv, shuffle=True, random_state=seed).split(np.zeros(len(y)), codes))
