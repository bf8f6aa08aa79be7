"""Values, records, parts and kernels come back as they were; a record checks its values when it is read."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from model_files import same
from sklearn.gaussian_process.kernels import Kernel

from gpclass.core.protocols import Array
from gpclass.core.registry import Part, stored
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
)
from gpclass.persistence.codec import Decoder, Encoder, ModelFileError, reading, write


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
    root: Array = field(metadata={"stored": "lower"})
    rows: Any
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
        (Unregistered(), "Unregistered"),
        (Dish, "registered"),
        (Path("x"), "cannot be stored"),
        (lambda: 0, "cannot be stored"),
        (np.longdouble(1.0), "double precision"),
        (np.array([1j]), "cannot be stored"),
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
        "different fields": [change(code, rows_elsewhere=None), change(code, more=1), less],
        "unknown part": [{**code, "class": "os.system"}],
        "unknown part 'spice saffron'": [{"class": "spice saffron", "fields": {}}],
        "unknown part 'x y'": [{"class": "x y", "fields": {}}],
        "without spices": [change(code, spices={"tuple": []})],
        "unknown type": [{"pickle": "x"}, {"class": "Dish"}, {}, {"class": 3, "fields": {}}],
        "reshape": [{"array": "0", "shape": [7, 2**40], "order": "C", "width": 0}],
        "size": [{"lower": "0", "size": 2**40}],
    }
    for words, codes in wrong.items():
        for each in codes:
            with pytest.raises(ValueError, match=words):
                Decoder(encoder.tensors).value(each)


# ------------------------------------------------------------------------------------ kernels

KERNELS = [
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


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_kernels(kernel):
    again = trip(kernel)
    assert type(again) is type(kernel)
    assert repr(again) == repr(kernel)


class Hump(FormulaKernel, formulas=Stationary(lambda kernel: Profile(np.exp, np.exp, factor=-1.0))):
    def __init__(self, length_scale=1.0, nu="text", metric=(1.0, 2.0), length_scale_bounds=(1e-5, 1e5)):
        self.length_scale = length_scale
        self.nu = nu
        self.metric = metric
        self.length_scale_bounds = length_scale_bounds


def test_kernels_of_others():
    assert trip(Hump(2.0)).get_params() == Hump(2.0).get_params()
    with pytest.raises(ModelFileError, match="cannot be stored"):
        trip(Hump(metric=len))
    with pytest.raises(ModelFileError, match="different fields of Hump"):
        Decoder({}).value({"class": "kernel Hump", "fields": {"length_scale": 1.0}})
