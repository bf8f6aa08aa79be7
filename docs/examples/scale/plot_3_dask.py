"""
Rows on the workers of a Dask cluster
=====================================

The rows stay where they are. What travels is small, and the answer is the same on any number of workers.
"""

import dask.array as da
import matplotlib.pyplot as plt
import numpy as np
from distributed import Client, LocalCluster

from gpclass import GaussianProcessClassifier
from gpclass.kernels import RBF


def fit(n_workers):
    """Return a model that was fitted on so many worker processes, and the rows that each of them holds."""
    with LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=None) as cluster:
        with Client(cluster) as client:
            X = da.random.default_rng(0).normal(size=(40_000, 2), chunks=(10_000, 2))
            y = (da.sin(2.0 * X[:, 0]) + X[:, 1] > 0.0).astype(int)
            X, y = client.persist([X, y])
            model = GaussianProcessClassifier(9.0 * RBF([1.0, 2.0]), inducing=50, optimizer=None, random_state=0)
            return model.fit(X, y), client.has_what()


# %%
# One worker process, then two. On a cluster of machines only the line with ``LocalCluster`` changes. The guard is needed where worker
# processes are started from a script.

if __name__ == "__main__":
    (one, _), (two, held) = fit(1), fit(2)
    print({worker: len(keys) for worker, keys in held.items()})
    rows = np.random.default_rng(1).normal(size=(2000, 2))
    print("largest difference:", abs(one.predict_proba(rows) - two.predict_proba(rows)).max())
    x = np.linspace(-3.0, 3.0, 80)
    p = two.predict_proba(np.stack(np.meshgrid(x, x), axis=-1).reshape(-1, 2))[:, 1].reshape(80, 80)
    fig, axis = plt.subplots(figsize=(5.4, 3.8), layout="constrained")
    filled = axis.contourf(x, x, p, levels=np.linspace(0.0, 1.0, 21), cmap="cividis")
    axis.plot(x, -np.sin(2.0 * x), "--", color="white", label="true boundary")
    axis.set(xlabel="$x_0$", ylabel="$x_1$", title="40,000 rows on two workers")
    axis.legend(loc="upper right")
    fig.colorbar(filled, ax=axis, label="predicted p(y = 1)", ticks=[0.0, 0.5, 1.0])
    plt.show()
