"""Passes over rows on this machine: a block is computed while the next one is read."""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from gpclass.core.protocols import Array
from gpclass.data.blocks import Block, Source
from gpclass.sparse.sums import Step, Sums, add_up, no_sums

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True, eq=False)
class Encode:
    """Labels as the likelihood takes them.

    Parameters
    ----------
    classes : array
        The distinct labels, sorted. Of two, the first is -1 and the second 1; of more, labels become
        weights of shape (n, C), which have the weights of the rows in them.

    Examples
    --------
    >>> import numpy as np
    >>> from gpclass.data.local import Encode
    >>> Encode(np.array(["no", "yes"]))(np.array(["yes", "no"]), None)
    (array([ 1., -1.]), None)
    >>> Encode(np.array([1, 2, 3]))(np.array([3, 1]), np.array([2.0, 1.0]))[0]
    array([[0., 0., 2.],
           [1., 0., 0.]])
    """

    classes: Any

    @property
    def n_latents(self) -> int:
        """Number of latent functions: one for two classes, else one a class."""
        return 1 if len(self.classes) == 2 else len(self.classes)

    def codes(self, y: Any) -> Any:
        """Return the positions of labels among the classes."""
        try:
            found = np.minimum(np.searchsorted(self.classes, y), len(self.classes) - 1)
            known = np.asarray(self.classes[found] == y)
        except TypeError:  # texts among numbers
            found, known = np.zeros(len(y), dtype=np.intp), np.zeros(len(y), dtype=bool)
        if not known.all():
            label = np.asarray(y)[int(np.argmin(known))]
            label = label.item() if isinstance(label, np.generic) else label
            few = ", ".join(repr(c) for c in np.asarray(self.classes)[:10].tolist())
            raise ValueError(f"The label {label!r} is not among the classes, which are {few}.")
        return found

    def __call__(self, y: Any, weight: Array | None) -> tuple[Array, Array | None]:
        """Return labels and weights: -1 and 1 and the weights, or label weights (n, C) and None."""
        codes = self.codes(y)
        if len(self.classes) == 2:
            return 2.0 * codes - 1.0, weight
        P = np.zeros((len(codes), len(self.classes)))
        P[np.arange(len(codes)), codes] = 1.0 if weight is None else weight
        return P, None


def add_blocks(step: Step, encode: Encode, blocks: Iterable[Block]) -> Sums:
    """Return the sums over the blocks, in their order."""
    total = no_sums(step)
    for block in blocks:
        total.add(add_up(step, block.X, *encode(block.y, block.weight)))
    return total


@dataclass(frozen=True, slots=True, eq=False)
class LocalData:
    """The rows of a source as an engine takes them.

    Parameters
    ----------
    source : Source
    encode : Encode
    n_jobs : int, optional
        Blocks computed at a time, each with one thread of BLAS; -1 for one a core. If not given they are
        computed one after the other, with as many threads of BLAS as there are.

    Examples
    --------
    >>> import numpy as np
    >>> from gpclass.kernels import RBF
    >>> from gpclass.likelihoods import Probit
    >>> from gpclass.priors.basis import make_basis
    >>> from gpclass.sparse.engine import Engine
    >>> from gpclass.data.local import Encode, LocalData
    >>> from gpclass.data.sources import ArraySource
    >>> X = np.random.default_rng(0).normal(size=(200, 1))
    >>> source = ArraySource(X, X[:, 0] > 0.3)
    >>> data = LocalData(source, Encode(source.classes()))
    >>> fit = Engine(data, Probit()).settle(make_basis(4.0 * RBF(), X[:10]))
    >>> -40.0 < fit.bound < -20.0
    True
    """

    source: Source
    encode: Encode
    n_jobs: int | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.source.n_rows

    def total(self, step: Step) -> Sums:
        """Return the sums over all rows."""
        if self.n_jobs is None or self.n_jobs == 1:
            with Ahead(self.source.blocks()) as blocks:
                return add_blocks(step, self.encode, blocks)
        return self._parallel(step)

    def _parallel(self, step: Step) -> Sums:
        from joblib import effective_n_jobs
        from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

        total = no_sums(step)
        jobs = effective_n_jobs(self.n_jobs)
        one = lambda block: add_blocks(step, self.encode, [block])  # noqa: E731
        with threadpool_limits(1), Ahead(self.source.blocks()) as blocks:
            for sums in in_turn(one, blocks, jobs):
                total.add(sums)
        return total

    def sample(self, n: int, rng: np.random.Generator) -> tuple[Array, Array, Array | None]:
        """Return random rows: inputs, and labels and weights as the likelihood takes them."""
        block = self.source.sample(n, rng)
        return block.X, *self.encode(block.y, block.weight)


def in_turn(work: Callable[[T], R], items: Iterable[T], jobs: int) -> Iterator[R]:
    """Yield what ``work`` returns, in the order of the items, with so many at work at a time."""
    running: deque[Future[R]] = deque()
    with ThreadPoolExecutor(jobs) as pool:
        try:
            for item in items:
                running.append(pool.submit(work, item))
                if len(running) > jobs:
                    yield running.popleft().result()
            while running:
                yield running.popleft().result()
        finally:
            for future in running:
                future.cancel()


class Ahead(Iterator[T]):
    """Items of an iterator, of which a thread fetches the next while one is in use.

    As a context manager it ends the thread, whether or not all items have been taken; what the iterator
    raises is raised here.
    """

    def __init__(self, items: Iterator[T], depth: int = 1) -> None:
        self._items = items
        self._ready: queue.Queue[tuple[str, Any]] = queue.Queue(depth)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._fetch, name="gpclass-read-ahead", daemon=True)

    def _fetch(self) -> None:
        try:
            for item in self._items:
                if not self._put("item", item):
                    return
            self._put("end", None)
        except BaseException as error:  # whatever it is, it is the caller's
            self._put("error", error)
        finally:
            close = getattr(self._items, "close", None)
            if close is not None:
                close()

    def _put(self, kind: str, what: Any) -> bool:
        """Hand over, unless nobody wants it any more."""
        while not self._stopped.is_set():
            try:
                self._ready.put((kind, what), timeout=0.1)
                return True
            except queue.Full:
                continue
        return False

    def __enter__(self) -> Ahead[T]:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()

    def __next__(self) -> T:
        kind, what = self._ready.get()
        if kind == "item":
            item: T = what
            return item
        self._put("end", None)
        if kind == "error":
            raise what
        raise StopIteration
