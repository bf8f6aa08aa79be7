"""
The latent function, before and after
=====================================

Functions that are plausible before any label is seen, and those that agree with twenty labels.
"""

import matplotlib.pyplot as plt
import numpy as np

from gpclass import GaussianProcessClassifier
from gpclass.datasets import interval
from gpclass.kernels import RBF

# %%
# The true class is 0 between 25 and 60, and 1 elsewhere. Twenty of the hundred points have labels.

X, y, X_test, y_test = interval()
kernel = 9.0 * RBF(15.0)
model = GaussianProcessClassifier(kernel, optimizer=None).fit(X, y)

# %%
# Draw functions from the prior, a Gaussian process with this kernel, and from the posterior.

grid = np.linspace(0.0, 99.0, 200)[:, None]
rng = np.random.default_rng(1)
K = kernel(grid) + 1e-8 * np.eye(len(grid))
prior = rng.multivariate_normal(np.zeros(len(grid)), K, size=6, method="cholesky").T
posterior = model.sample_latent(grid, 6, random_state=0)
mean, std = model.predict_latent(grid, return_std=True)

fig, axes = plt.subplots(1, 2, figsize=(8.0, 3.2), sharey=True, layout="constrained")
bands = {"before": (prior, 0.0 * mean, 3.0 + 0.0 * std), "after twenty labels": (posterior, mean, std)}
for axis, (title, (draws, middle, deviation)) in zip(axes, bands.items(), strict=True):
    axis.fill_between(grid[:, 0], middle - 2 * deviation, middle + 2 * deviation, color="#0072B2", alpha=0.15)
    axis.plot(grid, draws, color="0.5", linewidth=0.8)
    axis.plot(grid, middle, color="#0072B2", linewidth=2.0)
    axis.set(title=title, xlabel="$x$")
axes[0].set_ylabel("latent function $f(x)$")
for label, marker in ((0, "o"), (1, "s")):
    rows = X[y == label, 0]
    height = np.full(len(rows), 5.8 if label else -5.8)
    axes[1].plot(
        rows, height, marker, color="black", fillstyle="full" if label else "none", label=f"class {label}"
    )
axes[1].legend(loc="lower right", fontsize="small")
plt.show()
