"""The kernels that a model file may hold: all registered ones, by the parameters of their constructors.

A kernel is registered when the module that defines it is imported, so a file never brings a class of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gpclass.kernels.formulas import Check, entries
from gpclass.kernels.parameters import checks_of


class _Names(Mapping[type, str]):
    """The names in model files of all classes that are registered at the moment."""

    def __getitem__(self, cls: type) -> str:
        return entries()[cls].name

    def __iter__(self) -> Iterator[type]:
        return iter(entries())

    def __len__(self) -> int:
        return len(entries())


class _Kernels(Mapping[str, tuple[type, Mapping[str, Check]]]):
    """The class of each name, and the checks of its parameters."""

    def __getitem__(self, name: str) -> tuple[type, Mapping[str, Check]]:
        found = {entry.name: entry for entry in entries().values()}[name]
        return found.cls, checks_of(found)

    def __iter__(self) -> Iterator[str]:
        return iter({entry.name: None for entry in entries().values()})

    def __len__(self) -> int:
        return len({entry.name for entry in entries().values()})


NAMES: Mapping[type, str] = _Names()
KERNELS: Mapping[str, tuple[type, Mapping[str, Check]]] = _Kernels()


def complaint(name: str, params: dict[str, Any]) -> str:
    """Return what is wrong with the parameters of a kernel, as the end of a sentence, or nothing."""
    checks = KERNELS[name][1]
    if set(params) != set(checks):
        return f"the kernel {name} has other parameters than {', '.join(checks)}"
    for key, value in params.items():
        if not checks[key](value):
            return f"{key} of the kernel {name} is {value!r:.80}, which is not possible"
    return ""
