"""
Large data: inducing inputs
===========================

Five thousand rows, represented by at most sixty inducing inputs: time grows in proportion to the rows, not to their
cube.
"""

import matplotlib.pyplot as plt
import numpy as np

from gpclass import GaussianProcessClassifier
from gpclass.kernels import RBF

# %%
# Inducing inputs are places whose latent values stand for those of all rows. They are chosen among the rows,
# where the approximation would lose most. Without the argument ``inducing``, their number is chosen too.

rng = np.random.default_rng(0)
X = rng.uniform(-3.0, 3.0, (5000, 2))
y = rng.uniform(size=5000) < 1.0 / (1.0 + np.exp(-4.0 * np.sin(X[:, 0]) * np.cos(X[:, 1])))
model = GaussianProcessClassifier(4.0 * RBF([1.0, 1.0]), inducing=60, random_state=0).fit(X, y)
report = model.base_estimator_.inducing
print(f"{report.n_rows} rows, {report.n_inducing} inducing inputs, {report.passes} passes over the rows")
print(model.kernel_)

# %%
# On the left a tenth of the rows (orange: class 1), on the right the probability and the inducing inputs
# (crosses).

x = np.linspace(-3.0, 3.0, 80)
p = model.predict_proba(np.stack(np.meshgrid(x, x), axis=-1).reshape(-1, 2))[:, 1].reshape(80, 80)
fig, axes = plt.subplots(1, 2, figsize=(8.6, 3.8), sharey=True, layout="constrained")
axes[0].scatter(*X[::10].T, c=np.where(y[::10], "#E69F00", "#0072B2"), s=6)
filled = axes[1].contourf(x, x, p, levels=np.linspace(0.0, 1.0, 21), cmap="cividis")
axes[1].plot(*report.Z.T, "x", color="#D55E00", markersize=6)
fig.colorbar(filled, ax=axes[1], label="predicted p(y = 1)", ticks=[0.0, 0.5, 1.0])
axes[0].set(xlabel="$x_1$", ylabel="$x_2$", title="some of 5,000 rows")
axes[1].set(xlabel="$x_1$", title="probability, and inducing inputs")
plt.show()
