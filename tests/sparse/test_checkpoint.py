"""A long fit that was killed continues where it was."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from problems import many_rows
from scipy import stats

from gpclass import GaussianProcessClassifier
from gpclass.core.hyperpriors import Shrinkage
from gpclass.inference import VI
from gpclass.kernels import RBF, Matern
from gpclass.likelihoods import LabelNoise
from gpclass.sparse import Inducing
from gpclass.sparse.engine import Engine


class TestCheckpoint:
    def test_a_killed_fit_goes_on(self, tmp_path, monkeypatch):
        X, y = many_rows(3000)
        path = tmp_path / "state"
        kernel = 2.0 * RBF([1.0, 1.0])
        settings = Inducing(n=40, rows=(300, 600), checkpoint=path, dtype="float64")
        right = Engine.converge

        def dies(self, *args, **kwargs):
            fit = right(self, *args, **kwargs)
            if self.data.n_rows == 3000:
                raise MemoryError("killed")
            return fit

        monkeypatch.setattr(Engine, "converge", dies)
        with pytest.raises(MemoryError):
            GaussianProcessClassifier(kernel, inducing=settings, random_state=0).fit(X, y)
        assert path.exists()
        monkeypatch.setattr(Engine, "converge", right)
        went_on = GaussianProcessClassifier(kernel, inducing=settings, random_state=0).fit(X, y)
        path.unlink()
        afresh = GaussianProcessClassifier(kernel, inducing=settings, random_state=0).fit(X, y)
        # Nothing of the first stages is done again.
        assert went_on.base_estimator_.inducing.passes < afresh.base_estimator_.inducing.passes
        assert_allclose(
            went_on.log_marginal_likelihood_value_, afresh.log_marginal_likelihood_value_, rtol=3e-4
        )


KERNEL = 2.0 * RBF([1.0, 1.0])
X, Y = many_rows(400)
ONE_LABEL, ONE_INPUT = Y.copy(), X.copy()
ONE_LABEL[77] = 1 - ONE_LABEL[77]
ONE_INPUT[123, 1] += 1e-9
GIVEN = {"kernel": KERNEL, "optimizer": None, "likelihood": "probit", "random_state": 0}
SETTINGS = {"n": 10, "dtype": "float32"}
ANOTHER = {
    "rows": ("data", {"X": X[:300], "y": Y[:300]}),
    "one label": ("data", {"y": ONE_LABEL}),
    "one input": ("data", {"X": ONE_INPUT}),
    "one weight": ("data", {"weight": np.where(np.arange(400) == 5, 2.0, 1.0)}),
    "columns": ("data", {"X": X[:, ::-1]}),
    "classes": ("data and likelihood", {"y": Y + (X[:, 1] > 1.0), "likelihood": "softmax"}),
    "value": ("kernel", {"kernel": 2.0 * RBF([1.0, 1.0 + 1e-6])}),
    "fixed value": ("kernel", {"kernel": 2.0 * RBF([1.0, 1.0], "fixed")}),
    "bounds": ("kernel", {"kernel": 2.0 * RBF([1.0, 1.0], (1e-3, 1e3))}),
    "kernel": ("kernel", {"kernel": 2.0 * Matern([1.0, 1.0])}),
    "likelihood": ("likelihood", {"likelihood": "logit"}),
    "rate": ("likelihood", {"likelihood": LabelNoise(rate=0.1)}),
    "tolerance": ("inference", {"inference": VI(tol=1e-3)}),
    "prior": ("hyperprior", {"hyperprior": {"length_scale": stats.gamma(2.0)}}),
    "shrinkage": ("hyperprior", {"hyperprior": Shrinkage(0.2)}),
    "learning": ("optimizer", {"optimizer": "fmin_l_bfgs_b"}),
    "number": ("settings", {"n": 11}),
    "inputs": ("settings", {"inputs": X[:10]}),
    "precision": ("settings", {"dtype": "float64"}),
    "both": ("kernel and settings", {"kernel": 3.0 * RBF([1.0, 1.0]), "dtype": "float64"}),
}


def fitted(path, *data, **changes):
    """Fit with a checkpoint; ``changes`` are of the data, the settings of inducing inputs or the classifier."""
    settings = {name: changes.pop(name) for name in list(changes) if name in Inducing.__dataclass_fields__}
    rows = data or (changes.pop("X", X), changes.pop("y", Y), changes.pop("weight", None))
    settings = Inducing(**SETTINGS | settings, checkpoint=path)
    return GaussianProcessClassifier(**GIVEN | {"inducing": settings} | changes).fit(*rows)


def passes(model):
    return model.base_estimator_.inducing.passes


@pytest.fixture(scope="module")
def of(tmp_path_factory):
    """Return a function that gives the checkpoint of a fit with a change."""
    folder = tmp_path_factory.mktemp("states")

    def path(**changes):
        place = folder / f"state-{len(list(folder.iterdir()))}"
        fitted(place, **changes)
        return place

    return path


@pytest.fixture(scope="module")
def state(of):
    return of()


@pytest.mark.filterwarnings("ignore:hyperprior")  # has no effect without learning
class TestAnotherProblem:
    @pytest.mark.parametrize("change", ANOTHER)
    def test_is_refused_by_name(self, state, change):
        name, changes = ANOTHER[change]
        with pytest.raises(ValueError, match=rf"differs in its {name}: remove the file"):
            fitted(state, **changes)

    def test_parameters_of_parts_count(self, of):
        for change, other, name in (
            ({"likelihood": LabelNoise(rate=0.1)}, {"likelihood": LabelNoise(rate=0.2)}, "likelihood"),
            (
                {"hyperprior": {"length_scale": stats.gamma(2.0)}},
                {"hyperprior": {"length_scale": stats.gamma(3.0)}},
                "hyperprior",
            ),
            ({"hyperprior": Shrinkage(0.2)}, {"hyperprior": Shrinkage(0.3)}, "hyperprior"),
            ({"kernel": 2.0 * RBF(1.0001, "fixed")}, {"kernel": 2.0 * RBF(1.0002, "fixed")}, "kernel"),
        ):
            path = of(**change)
            with pytest.raises(ValueError, match=rf"differs in its {name}: remove"):
                fitted(path, **other)
            fitted(path, **change)

    @pytest.mark.parametrize("kernel", [None, "rbf"])
    def test_a_kernel_that_the_data_give_is_not_another(self, of, kernel):
        options = {"kernel": kernel, "optimizer": "fmin_l_bfgs_b", "rows": (60, 120), "y": Y[:200]}
        path = of(**options, X=X[:200])
        with pytest.raises(ValueError, match="differs in its data: remove"):
            fitted(path, **options, X=3.0 * X[:200])
        fitted(path, **options, X=X[:200], random_state=7)

    def test_that_cannot_be_read(self, tmp_path, state):
        whole = state.read_bytes()
        array = io.BytesIO()
        np.save(array, np.ones(3))
        other = io.BytesIO()  # a file of NumPy's that is no checkpoint
        np.savez(other, theta=np.ones(3))
        for content in (b"", b"nonsense", whole[:200], whole[:-200], array.getvalue(), other.getvalue()):
            (tmp_path / "state").write_bytes(content)
            with pytest.raises(ValueError, match=r"cannot be read .*: remove the file"):
                fitted(tmp_path / "state")


class TestTheSameProblem:
    def test_weights_of_one_and_another_seed_and_more_steps(self, tmp_path):
        first = fitted(tmp_path / "state")
        again = fitted(tmp_path / "state", weight=np.ones(400), random_state=3, max_refine=60, gain=5e-4)
        assert passes(again) < passes(first)


class TestSeveralModels:
    @pytest.mark.parametrize("scheme", ["one_vs_rest", "one_vs_one"])
    def test_have_a_file_each(self, tmp_path, scheme):
        y = Y + (X[:, 1] > 1.0)
        options = {"y": y, "multi_class": scheme, "dtype": "float64"}
        calm, first, again = (
            fitted(path, **options) for path in (None, tmp_path / "state", tmp_path / "state")
        )
        assert sorted(p.name for p in tmp_path.iterdir()) == ["state.0", "state.1", "state.2"]
        for model in (first, again):
            assert_allclose(
                model.predict_proba(X), calm.predict_proba(X), atol=1e-4
            )  # q is iterated to 4e-6 nats

    def test_trials_of_methods_leave_it_alone(self, tmp_path):
        y, options = Y + (X[:, 1] > 1.0), {"likelihood": "softmax", "inference": "auto", "dtype": "float64"}
        calm, found, again = (
            fitted(path, y=y, **options) for path in (None, tmp_path / "state", tmp_path / "state")
        )
        for model in (found, again):
            assert_allclose(model.predict_proba(X), calm.predict_proba(X), atol=1e-4)


class TestNoStepsOnAllRows:
    """``max_refine=0`` keeps the hyperparameters that learning on fewer rows, or a checkpoint, has given."""

    X, y = many_rows(250)

    @pytest.mark.filterwarnings("ignore:The optimal value found")  # one of the columns does not matter
    @pytest.mark.parametrize(("kernel", "inference"), [(2.0 * RBF([1.0, 1.0]), "vi"), (None, "dirichlet")])
    def test_of_a_checkpoint_its_hyperparameters_are_kept(self, tmp_path, kernel, inference):
        options = {"kernel": kernel, "inference": inference, "random_state": 0}
        settings = Inducing(n=15, rows=(60, 120), checkpoint=tmp_path / "state", max_refine=2)
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
