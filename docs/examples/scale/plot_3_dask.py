"""
Rows on the workers of a Dask cluster
=====================================

The rows stay where they are, only sums over them travel, and the answer agrees with that of one process.
"""

import dask.array as da
import matplotlib.pyplot as plt
import numpy as np
from distributed import Client, LocalCluster

from gpclass import GaussianProcessClassifier
from gpclass.kernels import RBF

# %%
# Two worker processes on this machine. On a cluster of machines only this line changes.


def cluster():
    return LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)


# %%
# Forty thousand rows in four blocks, made on the workers and kept in their memory. The guard is needed in a
# script, because worker processes read the script when they are started; a notebook does without.

if __name__ == "__main__":
    model = GaussianProcessClassifier(9.0 * RBF([1.0, 2.0]), inducing=50, optimizer=None, random_state=0)
    with cluster() as workers, Client(workers) as client:
        X = da.random.default_rng(0).normal(size=(40_000, 2), chunks=(10_000, 2))
        y = (da.sin(2.0 * X[:, 0]) + X[:, 1] > 0.0).astype(int)
        X, y = client.persist([X, y])
        model.fit(X, y)
        accuracy = (model.predict(X) == y).mean().compute()  # predictions are made by the workers too
        rows, labels = X.compute(), y.compute()
    report = model.base_estimator_.inducing
    print(f"{report.n_rows} rows in {report.passes} passes, accuracy {accuracy:.3f}")

    # The same rows in this process
    alone = GaussianProcessClassifier(model.kernel_, inducing=report.Z, optimizer=None).fit(rows, labels)
    p, q = (each.predict_proba(rows[:5000])[:, 1] for each in (model, alone))
    print(f"largest difference of a probability from a fit in one process: {abs(p - q).max():.1e}")

    fig, axis = plt.subplots(figsize=(7.0, 4.0), layout="constrained")
    for label, colour in ((0, "#0072B2"), (1, "#E69F00")):
        axis.plot(
            *rows[:5000][(p > 0.5) == label].T, ".", color=colour, markersize=3, label=f"predicted {label}"
        )
    x = np.linspace(-3.0, 3.0, 80)
    axis.plot(x, -np.sin(2.0 * x), color="black", linewidth=2.0, label="true boundary")
    axis.set(xlabel="$x_0$", ylabel="$x_1$", title="5,000 of 40,000 rows, fitted by two workers")
    axis.legend(loc="upper right")
    plt.show()
