"""A class that lacks an abstract method cannot be instantiated, whatever it derives from."""

from __future__ import annotations

import importlib
import inspect
import pkgutil

import pytest

import gpclass


def classes():
    """Return all classes of gpclass that declare abstract methods."""
    found = {}
    for module in pkgutil.walk_packages(gpclass.__path__, "gpclass."):
        if not module.name.endswith("__main__"):
            for each in vars(importlib.import_module(module.name)).values():
                if inspect.isclass(each) and each.__module__.startswith("gpclass"):
                    found[f"{each.__module__}.{each.__qualname__}"] = each
    return [
        each
        for _, each in sorted(found.items())
        if not getattr(each, "_is_protocol", False)
        and any(getattr(member, "__isabstractmethod__", False) for member in vars(each).values())
    ]


def test_the_base_classes_are_found():
    names = {each.__name__ for each in classes()}
    assert {"Sampler", "Process", "Source", "BinaryLikelihood"} <= names


@pytest.mark.parametrize("base", classes(), ids=lambda each: each.__name__)
def test_an_incomplete_subclass_cannot_be_instantiated(base):
    # A subclass that sets ``kind`` is not registered, so that no other test sees it.
    marks = {"__slots__": ()} | ({"kind": base.kind} if hasattr(base, "kind") else {})
    required = sorted(getattr(base, "__abstractmethods__", ()))
    assert required
    for missing in required:
        given = {name: (lambda self, *args: None) for name in required if name != missing}
        incomplete = type(base)("Incomplete", (base,), marks | given)
        with pytest.raises(TypeError, match=rf"abstract.*\b{missing}\b"):
            object.__new__(incomplete)
    object.__new__(type(base)("Complete", (base,), marks | dict.fromkeys(required)))
