"""A long fit that was killed continues where it was."""

from __future__ import annotations

import pytest
from numpy.testing import assert_allclose
from problems import many_rows

from gpclass import GaussianProcessClassifier
from gpclass.kernels import RBF
from gpclass.sparse import Inducing
from gpclass.sparse.engine import Engine


class TestCheckpoint:
    def test_a_killed_fit_goes_on(self, tmp_path, monkeypatch):
        X, y = many_rows(3000)
        path = tmp_path / "state"
        kernel = 2.0 * RBF([1.0, 1.0])
        settings = Inducing(n=40, rows=(300, 600), checkpoint=path, dtype="float64")
        right = Engine.converge
        calls = []

        def dies(self, *args, **kwargs):
            fit = right(self, *args, **kwargs)
            calls.append(self.data.n_rows)
            if self.data.n_rows == 3000:
                raise MemoryError("killed")
            return fit

        monkeypatch.setattr(Engine, "converge", dies)
        with pytest.raises(MemoryError):
            GaussianProcessClassifier(kernel, inducing=settings, random_state=0).fit(X, y)
        assert path.exists()
        monkeypatch.setattr(Engine, "converge", right)
        seen = []
        report = Engine.converge
        monkeypatch.setattr(
            Engine,
            "converge",
            lambda self, *a, **k: (seen.append(self.data.n_rows), report(self, *a, **k))[1],
        )
        went_on = GaussianProcessClassifier(kernel, inducing=settings, random_state=0).fit(X, y)
        assert set(seen) == {3000}  # nothing of the first stages again
        path.unlink()
        afresh = GaussianProcessClassifier(kernel, inducing=settings, random_state=0).fit(X, y)
        assert_allclose(
            went_on.log_marginal_likelihood_value_, afresh.log_marginal_likelihood_value_, rtol=3e-4
        )

    def test_of_another_problem(self, tmp_path):
        X, y = many_rows(400)
        settings = Inducing(n=10, checkpoint=tmp_path / "state")
        GaussianProcessClassifier(inducing=settings, random_state=0).fit(X, y)
        with pytest.raises(ValueError, match="another problem"):
            GaussianProcessClassifier(inducing=settings).fit(X[:300], y[:300])
        cut = (tmp_path / "state").read_bytes()[:-500]
        for content in (b"nonsense", b"", cut):
            (tmp_path / "state").write_bytes(content)
            with pytest.raises(ValueError, match=r"cannot be read .* or give another path\."):
                GaussianProcessClassifier(inducing=settings).fit(X, y)
