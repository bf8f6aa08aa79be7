"""Passes over rows that this process reads: their totals, and several blocks at a time."""

from __future__ import annotations

import numpy as np
import pytest
from moments import MomentsJob, assert_same, labelled_rows, moments

from gpclass.data.rows import Rows
from gpclass.data.sources import BlockSource
from gpclass.validation import Encode

SIGNS = (-1.0, 1.0)


class TestPasses:
    @pytest.mark.parametrize("n_jobs", [None, 2])
    def test_give_the_total_of_one_block(self, n_jobs):
        X, y, w = labelled_rows()
        source = BlockSource([(X, y, w)], rows=333)
        data = source.data(Encode(source.classes(), SIGNS), n_jobs)
        assert data.n_rows == 3000
        assert_same(data.total(MomentsJob()), moments(X, y, w))
        one_by_one = source.data(Encode(source.classes(), SIGNS)).total(MomentsJob())
        assert_same(data.total(MomentsJob()), one_by_one, rtol=0.0)

    def test_three_classes(self):
        X, y, w = labelled_rows(classes=3)
        source = BlockSource([(X, y, w)], rows=700)
        encode = Encode(source.classes())
        total = source.data(encode).total(MomentsJob())
        P = (y[:, None] == np.array(["no", "perhaps", "yes"])) * w[:, None]
        assert_same(total, MomentsJob()(Rows(X, P)))

    def test_a_weight_of_two_is_two_copies(self):
        X, y, _ = labelled_rows(400)
        encode = Encode(np.unique(y), SIGNS)
        heavy = BlockSource([(X, y, np.full(400, 2.0))]).data(encode).total(MomentsJob())
        twice = BlockSource([(X, y), (X, y)], rows=150).data(encode).total(MomentsJob())
        assert_same(heavy, twice)
        assert heavy.n == twice.n == 800.0

    def test_samples_come_encoded(self):
        source = BlockSource([labelled_rows()])
        rows = source.data(Encode(np.array(["no", "perhaps"]), SIGNS)).sample(50, np.random.default_rng(0))
        assert rows.X.shape == (50, 3)
        assert set(rows.y) == {-1.0, 1.0}
        assert rows.weight is not None

    def test_rows_in_memory_are_data_too(self):
        X, y, w = labelled_rows(100)
        rows = Rows(X, np.where(y == "no", -1.0, 1.0), w)
        assert_same(rows.total(MomentsJob()), moments(X, y, w), rtol=0.0)
        assert rows.sample(100, np.random.default_rng(0)) is rows
        few = rows.sample(7, np.random.default_rng(0))
        assert few.n_rows == len(few.y) == len(few.weight) == 7
