"""A long fit that was killed continues where it was."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
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
        (tmp_path / "state").write_bytes(b"nonsense")
        with pytest.raises(ValueError, match="cannot be read"):
            GaussianProcessClassifier(inducing=settings).fit(X, y)


class TestNoStepsOnAllRows:
    """``max_refine=0`` keeps the hyperparameters that learning on fewer rows, or a checkpoint, has given."""

    X, y = many_rows(400)

    @pytest.mark.parametrize("inference", ["vi", "dirichlet"])
    @pytest.mark.parametrize("kernel", [2.0 * RBF([1.0, 1.0]), None])
    def test_of_a_checkpoint_its_hyperparameters_are_kept(self, tmp_path, kernel, inference):
        options = {"kernel": kernel, "inference": inference, "random_state": 0}
        settings = Inducing(n=15, rows=(100, 200), checkpoint=tmp_path / "state", max_refine=2)
        learned = GaussianProcessClassifier(**options, inducing=settings).fit(self.X, self.y)
        kept = np.load(tmp_path / "state")["theta"]
        clf = GaussianProcessClassifier(**options, inducing=replace(settings, max_refine=0)).fit(
            self.X, self.y
        )
        assert_allclose(clf.kernel_.theta, kept)
        assert len(clf.history_) == 0
        assert_allclose(clf.predict_proba(self.X), learned.predict_proba(self.X), atol=0.1)

    @pytest.mark.parametrize("inference", ["vi", "dirichlet"])
    def test_an_optimizer_of_the_users_works_on_all_rows(self, inference):
        def coordinate_wise(function, start, bounds):
            """Minimise over the variance, then over the length scale, on a grid."""
            theta = np.array(start)
            for i in range(len(theta)):
                trials = [
                    np.where(np.arange(len(theta)) == i, v, theta) for v in np.log([0.5, 1.0, 2.0, 4.0])
                ]
                theta = min(trials, key=lambda t: function(t, eval_gradient=False))
            return theta, function(theta, eval_gradient=False)

        options = {"inference": inference, "optimizer": coordinate_wise, "random_state": 0}
        ends = [
            GaussianProcessClassifier(1.0 * RBF(0.7), **options, inducing=Inducing(n=15, max_refine=n)).fit(
                self.X, self.y
            )
            for n in (0, 5)
        ]
        assert_allclose(ends[0].kernel_.theta, ends[1].kernel_.theta)
        assert np.isin(np.exp(ends[0].kernel_.theta).round(6), [0.5, 1.0, 2.0, 4.0]).all()
