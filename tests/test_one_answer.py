"""One answer: all inputs inducing or none, one block, many or on Dask, and after workers or the run were killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from numpy.testing import assert_allclose
from problems import many_rows, three_classes

from gpclass import GaussianProcessClassifier
from gpclass.inference import VI, Dirichlet
from gpclass.kernels import RBF
from gpclass.sparse import Inducing

KERNEL = 4.0 * RBF([1.0, 1.5])
X, CODES = three_classes(60)
NEW = three_classes(20, seed=5)[0]
TIGHT = VI(tol=1e-9)
METHODS = {
    "vi": {"inference": TIGHT},
    "vi logit": {"inference": TIGHT, "likelihood": "logit"},
    "vi softmax": {"inference": TIGHT, "likelihood": "softmax"},
    "ep": {"inference": "ep"},
    "laplace": {"inference": "laplace"},
    "dirichlet": {"inference": Dirichlet(0.01)},
}


def classifier(inducing, **options):
    return GaussianProcessClassifier(KERNEL, inducing=inducing, optimizer=None, random_state=0, **options)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.filterwarnings("ignore:Credible intervals of Dirichlet")
def test_all_inputs_inducing_are_no_inducing_inputs(name):
    y = CODES if name in ("vi softmax", "dirichlet") else CODES == 1
    dense = classifier(None, **METHODS[name]).fit(X, y)
    found = classifier(Inducing(inputs=X.copy(), dtype="float64"), **METHODS[name]).fit(X, y)
    assert_allclose(found.log_marginal_likelihood_value_, dense.log_marginal_likelihood_value_, atol=1e-4)
    assert_allclose(found.predict_proba(NEW), dense.predict_proba(NEW), atol=5e-4)
    for a, b in zip(found.predict_interval(NEW), dense.predict_interval(NEW), strict=True):
        assert_allclose(a, b, atol=2e-3 if y is not CODES else 0.02)  # by other draws for three classes


@pytest.mark.parametrize("name", ["vi", "vi softmax", "dirichlet"])
@pytest.mark.slow
def test_one_block_many_blocks_and_dask(name):
    pytest.importorskip("distributed", reason="needs Dask")
    import dask.array as da

    X, y = many_rows(900)
    y = y + (X[:, 1] > 1.0) if name != "vi" else y
    settings = Inducing(inputs=X[:25].copy(), dtype="float64")

    def fit(*data):
        return classifier(settings, **METHODS[name]).fit(*data)

    whole = fit(X, y)
    blocks = fit(lambda: [(X[rows], y[rows]) for rows in (slice(0, 1), slice(1, 400), slice(400, 900))])
    dask = fit(da.from_array(X, chunks=(200, 2)), da.from_array(y, chunks=200))
    for other in (blocks, dask):
        assert_allclose(
            other.log_marginal_likelihood_value_, whole.log_marginal_likelihood_value_, rtol=1e-10
        )
        assert_allclose(other.predict_proba(NEW), whole.predict_proba(NEW), atol=1e-8)
        assert_allclose(other.loo_log_score_, whole.loo_log_score_, atol=1e-8)


def checkpointed(inference, path):
    """Fit 1,500 rows in passes, with the state in a file after each."""
    X, y = many_rows(1500)
    settings = Inducing(n=30, rows=(200, 400), checkpoint=path, dtype="float64")
    method = Dirichlet(0.01) if inference == "dirichlet" else inference
    return classifier(settings, inference=method).fit(X, y)


KILLED = """
import os, signal, sys
sys.path[:0] = {places!r}
from gpclass.sparse.checkpoint import Checkpoint
from test_one_answer import checkpointed

write, seen = Checkpoint.write, []

def killed(self, **state):
    write(self, **state)
    seen.append(state)
    if len(seen) == {passes}:
        os.kill(os.getpid(), signal.SIGKILL)

Checkpoint.write = killed
checkpointed({inference!r}, {path!r})
"""


@pytest.mark.parametrize(("inference", "passes"), [("vi", 3), ("dirichlet", 1)])
@pytest.mark.slow
def test_a_run_that_is_killed_continues_to_the_same_answer(inference, passes, tmp_path):
    here = Path(__file__).parent
    places = [str(here.parent / "src"), str(here / "support"), str(here)]
    path = str(tmp_path / "state")
    text = KILLED.format(places=places, inference=inference, passes=passes, path=path)
    dead = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
    assert dead.returncode == -signal.SIGKILL, dead.stderr
    again, calm = checkpointed(inference, path), checkpointed(inference, None)
    assert_allclose(again.log_marginal_likelihood_value_, calm.log_marginal_likelihood_value_, rtol=1e-8)
    assert_allclose(again.predict_proba(NEW), calm.predict_proba(NEW), atol=1e-4)
    if inference == "vi":  # it did not begin again
        assert again.base_estimator_.inducing.passes < calm.base_estimator_.inducing.passes


@pytest.mark.slow
def test_a_fit_survives_a_killed_worker():
    distributed = pytest.importorskip("distributed", reason="needs Dask")
    import dask.array as da

    X, y = many_rows(40_000)
    settings = Inducing(inputs=X[:200].copy(), dtype="float64")
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        rows = da.from_array(X, chunks=(2000, 2)), da.from_array(y, chunks=2000)
        calm = classifier(settings).fit(*rows, client=client)
        found = []
        work = threading.Thread(
            target=lambda: found.append(classifier(settings).fit(*rows, client=client)), daemon=True
        )
        work.start()
        deadline, busy = time.monotonic() + 300, None
        while busy is None:
            assert time.monotonic() < deadline, "no worker began a pass"
            time.sleep(0.02)
            busy = next((worker for worker, keys in client.processing().items() if keys), None)
        os.kill(client.run(os.getpid, workers=[busy])[busy], signal.SIGKILL)
        work.join(600)
        assert found
        assert found[0].log_marginal_likelihood_value_ == calm.log_marginal_likelihood_value_
        assert_allclose(found[0].loo_log_score_, calm.loo_log_score_, rtol=1e-12)
