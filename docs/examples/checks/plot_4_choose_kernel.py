"""
Kernels compared by their evidence
==================================

The evidence of the training rows ranks kernels much as held-out rows do.
"""

import matplotlib.pyplot as plt
import numpy as np

from gpclass import GaussianProcessClassifier

# %%
# A boundary that oscillates along one column and is linear in the other.

rng = np.random.default_rng(0)
X = rng.uniform(-3.0, 3.0, (1200, 2))
y = rng.random(1200) < 1.0 / (1.0 + np.exp(-4.0 * np.sin(2.5 * X[:, 0]) - 2.0 * X[:, 1]))
names = (
    "linear",
    "neural-network",
    "rbf-shared",
    "rbf",
    "matern12",
    "matern32",
    "matern52",
    "rational-quadratic",
)
scores = {}
for name in names:
    model = GaussianProcessClassifier(name, inference="ep", random_state=0).fit(X[:200], y[:200])
    proba = model.predict_log_proba(X[200:])[np.arange(1000), y[200:].astype(int)]
    scores[name] = model.log_marginal_likelihood_value_ / 200, proba.mean()

# %%
# Both panels have the same order, that of the evidence, which has not seen the held-out rows.

order = sorted(scores, key=lambda name: scores[name][0])
fig, axes = plt.subplots(1, 2, figsize=(9.0, 3.6), sharey=True, layout="constrained")
titles = "log evidence per training row", "mean log probability of 1,000 held-out labels"
for axis, values, title in zip(
    axes, zip(*(scores[name] for name in order), strict=True), titles, strict=True
):
    axis.plot(values, order, "o", color="#0072B2")
    axis.grid(axis="x", color="0.85", linewidth=0.7)
    axis.set_title(title)
    axis.locator_params(axis="x", nbins=5)
plt.show()

# %%
# With ``kernel=None``, the default, gpclass compares kernels in this way by itself, transforms of the columns and
# a linear part included:

model = GaussianProcessClassifier(random_state=0).fit(X[:200], y[:200])
print(model.kernel_)
