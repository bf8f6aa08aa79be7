"""Values, records and parts come back as they were; a record is checked by the annotations of its fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import pytest
from model_files import same
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import Kernel

from gpclass.core.protocols import Array
from gpclass.core.registry import Part, stored, stored_classes
from gpclass.kernels import (
    RBF,
    Columns,
    CompoundKernel,
    ConstantKernel,
    DotProduct,
    FormulaKernel,
    Linear,
    Matern,
    NeuralNetwork,
    PairwiseKernel,
    Profile,
    Stationary,
    WhiteKernel,
    base,
)
from gpclass.persistence import codec
from gpclass.persistence.codec import Decoder, Encoder
from gpclass.persistence.container import ModelFileError, reading, write
from gpclass.persistence.schema import complaint, fits, stored_fields


class Spice(Part):
    kind = "spice"


@dataclass(frozen=True, slots=True)
class Pepper(Spice):
    heat: float = 1.0
    inside: Spice | None = None


@dataclass(frozen=True, slots=True)
class Salt(Spice):
    pass


class Sugar(Spice):
    pass


@stored
@dataclass(frozen=True, slots=True, eq=False)
class Dish:
    spices: tuple[Spice, ...]
    root: Array = field(metadata={"shape": "n,n", "stored": "lower"})
    rows: Any = field(metadata={"shape": "n,..."})
    kernel: Kernel
    rows_elsewhere: object = field(default=None, metadata={"stored": False})

    def check_stored(self) -> None:
        if not self.spices:
            raise ValueError("A dish without spices.")


def trip(value, path=None):
    encoder = Encoder()
    code = encoder.value(value, "it")
    if path is not None:
        write(path, "{}", encoder.tensors)
        with reading(path) as (_, encoder.tensors):
            pass
    return Decoder(encoder.tensors).value(code)


def dish(**changes):
    fields = {
        "spices": (Pepper(2.0, Salt()), Salt()),
        "root": np.tril(np.ones((3, 3))),
        "kernel": 2.0 * RBF(3.0),
    }
    return Dish(**fields | {"rows": np.arange(6.0).reshape(3, 2)} | changes)


@pytest.mark.parametrize(
    "value",
    [
        None, True, -3, 2.5, np.inf, -np.inf, "señor", [1, (2.0, None)], {"a": 1, 2: [True]}, slice(1, None),
        np.float32(0.1), np.int8(-5), np.bool_(True), np.str_("x"), np.array([np.nan, np.inf]),
        np.arange(6).reshape(2, 3), np.arange(6.0).reshape(2, 3).T, np.arange(6.0)[::2], np.empty((0, 2)),
        np.array(["a", "bc"]), np.array([1, "b"], dtype=object), np.array([True, False]),
    ],
    ids=repr,
)  # fmt: skip
def test_values(value, tmp_path):
    again = trip(value, tmp_path / "file")
    if isinstance(value, dict | slice):
        assert again == value
    elif value is not None:
        same(value, again)


def test_records_and_parts_follow_from_their_fields():
    before = dish(rows_elsewhere=object())
    after = trip(before)
    assert after.spices == before.spices
    assert after.kernel == before.kernel
    assert after.rows_elsewhere is None
    same(before.root, after.root)
    assert type(trip(Sugar())) is Sugar


def test_what_is_above_a_triangle_is_not_stored():
    same(trip(dish(root=np.ones((3, 3)))).root, np.tril(np.ones((3, 3))))
    dish_with_garbage = dish(root=np.triu(np.full((3, 3), np.nan), 1) + np.tril(np.ones((3, 3))))
    encoder = Encoder()
    encoder.value(dish_with_garbage, "dish")
    assert sum(tensor.size for tensor in encoder.tensors.values()) == 6 + 6


class Unregistered(Spice):
    name: ClassVar[str] = "salt!"

    def __init__(self):
        self.grain = 3


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (dish(spices=()), "without spices"),
        (dish(spices=(1,)), "Dish.spices is not of the type"),
        (dish(kernel=3), "Dish.kernel is not of the type"),
        (dish(rows=np.ones((4, 2))), "Dish.rows is not an array of the shape"),
        (dish(rows=[[1.0], [2.0], [3.0]]), "Dish.rows is not an array of the shape"),
        (dish(root=np.full((3, 3), np.nan)), "not finite"),
        (dish(root=np.full((3, 3), 1e70)), "too large"),
        (dish(root=np.ones((3, 3), dtype=int)), "Dish.root is not of the type"),
        (Unregistered(), "Unregistered"),
        (Dish, "registered"),
        (Path("x"), "cannot hold"),
        (lambda: 0, "cannot hold"),
        (np.longdouble(1.0), "double precision"),
        (np.array([1j]), "cannot hold"),
        (object(), "registered"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_stored(value, words):
    with pytest.raises(ModelFileError, match=words):
        trip(value)


def change(code, **fields):
    return {**code, "fields": {**code["fields"], **fields}}


def test_wrong_codes_are_refused():
    encoder = Encoder()
    code = encoder.value(dish(), "dish")
    less = {**code, "fields": {k: v for k, v in code["fields"].items() if k != "root"}}
    wrong = {
        "other fields": [change(code, rows_elsewhere=None), change(code, more=1), less],
        "unknown part": [{**code, "class": "os.system"}],
        "unknown part 'spice saffron'": [{"class": "spice saffron", "fields": {}}],
        "unknown part 'x y'": [{"class": "x y", "fields": {}}],
        "not consistent": [change(code, kernel=1), change(code, spices={"tuple": []})],
        "unknown kind": [{"pickle": "x"}, {"class": "Dish"}, {}, {"class": 3, "fields": {}}],
        "reshape": [{"array": "0", "shape": [7, 2**40], "order": "C", "width": 0}],
        "size": [{"lower": "0", "size": 2**40}],
    }
    for words, codes in wrong.items():
        for each in codes:
            with pytest.raises(ValueError, match=words):
                Decoder(encoder.tensors).value(each)


def test_annotations():
    ones = np.ones(2)
    fine = [
        (1, int), (1, float), (1.5, float), (True, bool), (None, int | None), ("a", Literal["a", "b"]),
        ("a", str), ((1, 2), tuple[int, int]), ((1, 2, 3), tuple[int, ...]), ([1.0], Sequence[float]),
        ({1: "a"}, dict[int, str]), ({1: "a"}, Mapping[int, Any]), (ones, Array), (ones, NDArray[Any]),
        (len, Callable[..., Any]), (Salt(), Spice),
    ]  # fmt: skip
    wrong = [
        (True, int), ("1", float), (1, bool), (1, str), ("c", Literal["a", "b"]), (3, type(None)),
        ((1, 2, 3), tuple[int, int]), ([1.5], Sequence[int]), ("ab", Sequence[str]), ({1: 2}, dict[int, str]),
        (ones > 0, Array), ([1.0], Array), (3, Callable[..., Any]), (3, Spice),
    ]  # fmt: skip
    assert [case for case in fine if not fits(*case)] == []
    assert [case for case in wrong if fits(*case)] == []


def test_every_registered_class_can_be_checked():
    for cls in stored_classes().values():
        stored_fields(cls)  # its annotations can be resolved
    assert complaint(dish()) == ""


# ------------------------------------------------------------------------------------ kernels

FINE = [
    RBF([1.0, 2.0], "fixed"),
    RBF(1e99, [(0.1, 1.0)]),
    RBF([1e-300, 1e300]),
    Matern(nu=np.inf),
    Matern(nu=1000.0),
    ConstantKernel(0.0) + WhiteKernel(0.0) * DotProduct(0.0) ** 0.5,
    NeuralNetwork(0.0),
    Linear(centre=[0.0, -3.0]),
    PairwiseKernel(0.0, metric="poly", pairwise_kernels_kwargs={"degree": 2}),
    Columns(RBF(), slice(None, None, 2)),
    Columns(RBF(), np.array([True, False])),
    CompoundKernel([RBF(), Matern()]),
]
WRONG = [
    RBF(-1.0),
    RBF(np.nan),
    RBF([[1.0, 2.0]]),
    RBF("a"),
    Matern(nu=np.nan),
    ConstantKernel(-1.0),
    ConstantKernel(True),
    WhiteKernel(np.inf),
    Linear(centre=np.nan),
]


@pytest.mark.parametrize("kernel", FINE, ids=str)
def test_possible_kernels(kernel):
    again = trip(kernel)
    assert type(again) is type(kernel)
    assert repr(again) == repr(kernel)


@pytest.mark.parametrize("kernel", WRONG, ids=range(len(WRONG)))
def test_impossible_kernels(kernel):
    assert f"of the kernel {type(kernel).__name__} is" in complaint(kernel)
    with pytest.raises(ModelFileError, match="which is not possible"):
        trip(kernel)


def test_kernels_of_others(monkeypatch):
    formulas = dict(base.FORMULAS)
    for module in (base, codec):
        monkeypatch.setattr(module, "FORMULAS", formulas)

    class Hump(FormulaKernel, formulas=Stationary(lambda kernel: Profile(np.exp, np.exp, factor=-1.0))):
        def __init__(self, length_scale=1.0, nu="text", metric=(1.0, 2.0), length_scale_bounds=(1e-5, 1e5)):
            self.length_scale = length_scale
            self.nu = nu
            self.metric = metric
            self.length_scale_bounds = length_scale_bounds

    assert trip(Hump(2.0)).get_params() == Hump(2.0).get_params()
    assert "length_scale of the kernel Hump" in complaint(Hump(-1.0))
    with pytest.raises(ModelFileError, match="cannot hold"):
        trip(Hump(metric=len))
    with pytest.raises(ModelFileError, match="other fields of Hump"):
        Decoder({}).value({"class": "kernel Hump", "fields": {"length_scale": 1.0}})
