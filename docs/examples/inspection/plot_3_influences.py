"""
The rows behind a prediction
============================

The latent mean is a weighted sum over the training rows, so the rows that speak for a class can be named.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_iris

from gpclass import GaussianProcessClassifier
from gpclass.kernels import RBF

# %%
# Two kinds of iris, and a new flower between them.

X, y = load_iris(return_X_y=True)
X, y = X[50:, 2:], y[50:]  # versicolor (1) and virginica (2), length and width of the petals
model = GaussianProcessClassifier(9.0 * RBF([0.8, 0.4]), optimizer=None).fit(X, y)
flower = [5.2, 1.65]
(found,) = model.influences([flower], n=8)
print(found)

# %%
# Lines lead to the eight rows with the largest shares, thicker for larger ones. Their labels are not all the
# same: rows of both kinds are near.

fig, axes = plt.subplots(1, 2, figsize=(9.6, 4.0), width_ratios=[3, 2], layout="constrained")
colours = {1: "#D55E00", 2: "#0072B2"}
for label, name, marker in ((1, "versicolor", "o"), (2, "virginica", "s")):
    axes[0].plot(*X[y == label].T, marker, color=colours[label], alpha=0.35, markersize=5, label=name)
for row, share in zip(found.rows, found.shares, strict=True):
    line = [flower[0], X[row, 0]], [flower[1], X[row, 1]]
    axes[0].plot(*line, color=colours[y[row]], linewidth=4.0 * abs(share) / abs(found.shares[0]))
axes[0].plot(*flower, "*", color="black", markersize=13, label="new flower")
axes[0].set(xlabel="length of the petal (cm)", ylabel="width of the petal (cm)")
axes[0].legend(loc="lower right")
names = [f"row {row}" for row in found.rows]
axes[1].barh(names, found.shares, color=[colours[label] for label in found.labels])
axes[1].axvline(0.0, color="0.4", linewidth=0.8)
axes[1].invert_yaxis()
axes[1].set_xlabel("share of the latent mean")
axes[1].set_title(f"p(virginica) = {model.predict_proba([flower])[0, 1]:.2f}")
plt.show()

# %%
# A flower that resembles none has no such rows: nearly the entire prior variance remains, and the prediction is
# the prior's.

(far,) = model.influences([[10.0, 0.5]], n=2)
print(
    f"{far.variance_left:.0%} of the prior variance remains, and {found.variance_left:.0%} for the first flower"
)
