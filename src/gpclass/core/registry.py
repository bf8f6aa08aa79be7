"""Parts that users can name and model files can contain; they register themselves when they are defined.

A likelihood, a method or a sampler derives from a base class with a ``kind``; its ``name`` is what a user types
and what a model file stores. Records that only occur inside model files use the decorator `stored`. Both are read
back by their dataclass fields, so a new part needs no entry anywhere else.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

C = TypeVar("C", bound=type)

# Rarely used parts: their modules are imported when they are first requested by name.
LATER = {"inference": {"mcmc": "gpclass.mcmc.run", "rejection": "gpclass.sampling.accept"}}

_PARTS: dict[str, dict[str, Any]] = {}
_STORED: dict[str, Any] = {}


class Part(ABC):
    """Base class of parts that register themselves under ``kind`` and ``name``.

    A subclass that sets ``kind`` defines a family and is not registered itself. The name is that of the class in
    lower case unless the class sets ``name``. A class that lacks an abstract method cannot be instantiated.

    Examples
    --------
    >>> from gpclass.core.registry import Part, parts
    >>> class Fruit(Part):
    ...     kind = "fruit"
    >>> class Apple(Fruit):
    ...     pass
    >>> dict(parts("fruit"))
    {'apple': <class 'gpclass.core.registry.Apple'>}
    """

    __slots__ = ()
    kind: ClassVar[str]
    name: ClassVar[str]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "kind" in vars(cls):
            _PARTS.setdefault(cls.kind, {})
            return
        if "name" not in vars(cls):
            cls.name = cls.__name__.lower()
        known = _PARTS[cls.kind].setdefault(cls.name, cls)
        if (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
            raise TypeError(f"There is already a {cls.kind} with the name {cls.name!r}: choose another name.")
        _PARTS[cls.kind][cls.name] = cls  # dataclass(slots=True) creates the class twice; the second is kept


class Method(Part):
    """Base class of inference methods for p(f | X, y), by approximation or by sampling.

    ``comparable`` says whether the evidence is a probability of the labels, comparable with that of other models.
    """

    __slots__ = ()
    kind = "inference"
    comparable: ClassVar[bool] = True


class Likelihood(Part):
    """Base class of likelihoods p(y|f); their methods are documented in `BinaryLikelihood`."""

    __slots__ = ()
    kind = "likelihood"

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...


@dataclass(frozen=True, slots=True)
class _Parts(Mapping[str, Any]):
    """A view of the parts of one kind, including those whose modules are imported on request."""

    kind: str

    def __getitem__(self, name: str) -> Any:
        known, later = _PARTS[self.kind], LATER.get(self.kind, {})
        if name not in known and name in later:
            import_module(later[name])
        return known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*_PARTS[self.kind], *LATER.get(self.kind, {})]))

    def __len__(self) -> int:
        return len(list(iter(self)))


def parts(kind: str) -> Mapping[str, Any]:
    """Return the classes of one kind by their names: a view, in which parts that are defined later appear."""
    return _Parts(kind)


def kinds() -> tuple[str, ...]:
    """Return all kinds of parts."""
    return tuple(_PARTS)


def stored(cls: C) -> C:
    """Return the dataclass, registered for model files under its own name; its fields are stored."""
    if _STORED.setdefault(cls.__name__, cls).__module__ != cls.__module__:
        raise TypeError(f"Two classes of the name {cls.__name__} cannot both be stored in model files.")
    _STORED[cls.__name__] = cls
    return cls


def stored_classes() -> Mapping[str, Any]:
    """Return the other classes that model files may contain, by their names."""
    return MappingProxyType(_STORED)
