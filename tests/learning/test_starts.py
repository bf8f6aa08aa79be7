"""Learning does not depend on where the kernel starts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_breast_cancer, load_iris

from gpclass import GaussianProcessClassifier
from gpclass.core.objective import Evaluation
from gpclass.core.protocols import Info
from gpclass.inference import EP
from gpclass.kernels import RBF, ConstantKernel, DotProduct, Matern
from gpclass.learning import maximise as maximise_module
from gpclass.learning import sites
from gpclass.learning.maximise import Plan, Stage, for_more_rows, learn, maximise
from gpclass.learning.problem import Problem, SiteObjective, pose_classes
from gpclass.learning.starts import Look
from gpclass.likelihoods import CLogLog, LabelNoise, Logit, MultiProbit, Probit
from gpclass.priors import NotPositiveError

INFERENCE = EP()
X, y = load_breast_cancer(return_X_y=True)
RAW, LABELS = X[:120, :6], y[:120]


@pytest.mark.filterwarnings("ignore::gpclass.DoubtfulFitWarning")  # one length scale for raw columns
@pytest.mark.parametrize("inference", ["laplace", "vi"])
@pytest.mark.parametrize("standardised", [False, True])
def test_every_start_ends_at_the_same_evidence(inference, standardised):
    inputs = (RAW - RAW.mean(axis=0)) / RAW.std(axis=0) if standardised else RAW
    rng = np.random.default_rng(0)
    ends = []
    for variance, length in [(1.0, 1.0), *np.exp(rng.uniform(np.log(1e-5), np.log(1e5), size=(5, 2)))]:
        clf = GaussianProcessClassifier(ConstantKernel(variance) * RBF(length), inference=inference)
        ends.append(clf.fit(inputs, LABELS).log_marginal_likelihood_value_)
    assert_allclose(ends, max(ends), atol=0.5)
    share = LABELS.mean()
    assert min(ends) > len(LABELS) * (share * np.log(share) + (1.0 - share) * np.log(1.0 - share))


def test_the_start_of_the_user_is_followed_where_it_is_the_best():
    objective = SiteObjective(Problem(RAW, 2.0 * LABELS - 1.0, None, 1.0 * Matern(1.0), Probit(), INFERENCE))
    bounds = objective.problem.bounds
    look = Look(objective, bounds)
    look.around(objective.problem.kernel, RAW, objective.problem.theta)
    best = maximise(objective, look.best[1], bounds).theta
    again = Look(objective, bounds)
    again.around(objective.problem.kernel, RAW, best)
    assert_allclose(again.best[1], best)


def test_kernels_without_scales_and_points_that_fail_keep_the_given_start():
    class Failing:
        description = "always fails"

        def evaluate(self, theta, warm=None, *, gradient=True):
            raise NotPositiveError("beyond double precision")

    look = Look(Failing(), np.array([[-5.0, 5.0]] * 2))
    look.around(1.0 * RBF(1.0), RAW, np.zeros(2))
    assert look.best is None


class Trap:
    """A bowl with its maximum at 0, and evidences beyond 0.8 that inference did not converge to."""

    description = "a trap"

    def evaluate(self, theta, warm=None, *, gradient=True):
        far = bool(theta.max() > 0.8)
        away = theta
        value = 1e6 if far else -0.001 * float(away @ away)
        return Evaluation(value, 0.0 * theta if far else -0.002 * away, None, Info(not far, 1, float(far)))


def test_evaluations_that_did_not_converge_are_not_believed():
    end = maximise(
        Trap(), np.array([-1.1, -1.1]), np.array([[-9.0, 9.0]] * 2), inverse_hessian=1e4 * np.eye(2)
    )
    assert end.message == ""
    assert_allclose(end.theta, 0.0, atol=0.1)
    assert (end.history.evidence == 1e6).any()


class Never(Trap):
    """A slope without end, along which inference never converges though it comes near."""

    def evaluate(self, theta, warm=None, *, gradient=True):
        return Evaluation(float(theta.sum()), np.ones(2), None, Info(False, 1, 5e-4))


def test_a_search_that_never_converges_ends_and_says_so():
    end = maximise(Never(), np.zeros(2), np.array([[-1e6, 1e6]] * 2), ftol=0.0)
    assert len(end.history) == maximise_module.HOPELESS
    assert f"in {maximise_module.HOPELESS} of {maximise_module.HOPELESS} evaluations" in end.message


class Nearly(Trap):
    """A bowl of which inference always stops a little short of convergence."""

    def evaluate(self, theta, warm=None, *, gradient=True):
        return Evaluation(-float(theta @ theta), -2.0 * theta, None, Info(False, 1, 5e-4))


def test_evaluations_that_nearly_converged_are_believed():
    end = maximise(Nearly(), np.array([2.0, -1.0]), np.array([[-9.0, 9.0]] * 2))
    assert_allclose(end.theta, 0.0, atol=1e-4)


def test_stages_know_their_rows_and_end_early():
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(1000, 2))
    two = Problem(inputs, np.sign(inputs[:, 0]), None, 1.0 * RBF(1.0), Probit(), EP())
    stages = sites._stages(two, [300, 1200])
    assert [stage.n_rows for stage in stages] == [300, 1000]  # 1200 rows are more than there are
    assert stages[0].ftol > stages[1].ftol
    assert [stage.n_rows for stage in sites._stages(two.some(400), [300])] == [400]  # not worth it
    labels = np.eye(6)[rng.integers(0, 6, size=1000)]
    six = pose_classes(replace(two, y=labels, likelihood=MultiProbit()), labels)
    assert six.n_latent == 6000
    assert sites._stages(six, [300])[-1].max_iter == 1
    assert sites._stages(six.some(500), [300])[-1].max_iter > 1


def test_the_curvature_of_one_stage_is_adapted_to_the_next(monkeypatch):
    H = np.diag([2.0, 8.0])
    assert_allclose(for_more_rows(H, 100, 400), 0.5 * H)
    assert for_more_rows(None, 100, 400) is None
    bowl = [Stage("", lambda theta: Nearly(), n_rows=n) for n in (100, 400)]
    starts, box = [], np.array([[-9.0, 9.0]] * 2)

    def noted(*args, **options):
        starts.append(options["inverse_hessian"])
        return maximise(*args, **options)

    monkeypatch.setattr(maximise_module, "maximise", noted)
    learn(bowl, np.ones(2), box, Plan(), np.random.default_rng(0), inverse_hessian=0.5 * np.eye(2))
    assert_allclose(starts[0], 0.5 * np.eye(2))
    assert_allclose(starts[1], 0.25 * np.eye(2))  # the Hessian of the bowl was right from the start


def test_several_classes_from_a_hopeless_start():
    inputs, labels = load_iris(return_X_y=True)
    inputs, labels = inputs[::3], labels[::3]
    kernels = [ConstantKernel(1e-5) * RBF(1e5), ConstantKernel(1e5) * RBF(1e-5), 1.0 * RBF(1.0)]
    ends = [GaussianProcessClassifier(k).fit(inputs, labels).log_marginal_likelihood_value_ for k in kernels]
    assert_allclose(ends, max(ends), atol=0.5)


def test_a_likelihood_known_by_quadrature_is_guided_by_probit():
    rng = np.random.default_rng(3)
    inputs = rng.normal(size=(60, 2))
    signs = np.where(inputs[:, 0] + 0.5 * rng.normal(size=60) > 0.0, 1.0, -1.0)
    problem = Problem(inputs, signs, None, 1.0 * RBF([1.0, 1.0]), CLogLog(), EP())
    assert problem.guide().likelihood == Probit()
    for likelihood in (Probit(), Logit(), LabelNoise(rate=0.1)):  # closed forms, or parameters of its own
        other = replace(problem, likelihood=likelihood)
        assert other.guide() is other
    first = sites.begin(problem, Plan())
    assert first.inverse is not None
    assert first.warm is None  # its sites would be those of another likelihood
    guided = sites.learn_problem(problem, Plan(), rng)[1].objective
    plain = maximise(SiteObjective(problem), problem.theta, problem.bounds).objective
    assert guided > plain - 1e-3


class NotANumber:
    def __call__(self, prior, likelihood, y, *, weight=None, init=None):
        return replace(EP()(prior, likelihood, y), evidence=np.nan)

    def __str__(self):
        return "NotANumber()"


def test_an_evidence_that_is_no_number_is_refused():
    problem = Problem(RAW, np.where(LABELS > 0, 1.0, -1.0), None, 1.0 * RBF(1.0), Probit(), NotANumber())
    with pytest.raises(NotPositiveError, match=r"NotANumber\(\) came to no finite evidence .* up to 1 here"):
        problem.infer(problem.prior(), None)


def test_a_look_starts_from_the_last_one():
    problem = Problem(RAW, np.where(LABELS > 0, 1.0, -1.0), None, 1.0 * RBF(100.0), Probit(), EP())
    seen = []

    class Noting(SiteObjective):
        def evaluate(self, theta, warm=None, *, gradient=True):
            seen.append(warm)
            return super().evaluate(theta, warm, gradient=gradient)

    Look(Noting(problem), problem.bounds).around(problem.kernel, RAW, problem.theta)
    assert seen[0] is None
    assert all(warm is not None for warm in seen[1:])


def test_a_kernel_of_huge_inputs_is_scaled_down_first():
    inputs = 1e6 * (RAW - RAW.mean(axis=0))
    problem = Problem(
        inputs, np.where(LABELS > 0, 1.0, -1.0), None, 9.0 * DotProduct(1.0, "fixed"), Probit(), EP()
    )
    seen = []

    class Noting(SiteObjective):
        def evaluate(self, theta, warm=None, *, gradient=True):
            seen.append(float(theta[0]))
            return super().evaluate(theta, warm, gradient=gradient)

    wide = np.array([[-60.0, 60.0]])
    look = Look(Noting(problem), wide)
    look.around(problem.kernel, inputs, problem.theta)
    size = np.exp(seen) * (inputs**2).sum(axis=1).mean()
    assert_allclose(size, [4.0, 0.5, 30.0], rtol=1e-6)
    assert look.best is not None
