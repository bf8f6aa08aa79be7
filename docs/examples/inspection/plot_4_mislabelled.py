"""
Labels that are probably wrong
==============================

Every row has a prediction from all other rows. Where it contradicts the label, the label deserves a second look.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from gpclass import GaussianProcessClassifier

# %%
# Twelve of 240 labels are flipped.

rng = np.random.default_rng(0)
X, truth = make_moons(240, noise=0.15, random_state=0)
wrong = rng.choice(240, 12, replace=False)
y = truth.copy()
y[wrong] = 1 - y[wrong]
model = GaussianProcessClassifier("rbf-shared", random_state=0).fit(X, y)

# %%
# The twelve rows whose own label is least probable, with leave-one-out probabilities that cost nothing extra.

doubts = model.doubtful_labels(12)
for doubt in doubts[:4]:
    print(f"row {doubt.row}: label {doubt.label} has probability {doubt.proba:.3f}")
found = [doubt.row for doubt in doubts]
print(f"{len(set(found) & set(wrong))} of the 12 rows have a flipped label")

# %%
# Circles mark the rows to look at, and crosses the labels that were flipped.

fig, axis = plt.subplots(figsize=(7.0, 4.0), layout="constrained")
for label, marker, colour in ((0, "o", "#E69F00"), (1, "s", "#0072B2")):
    axis.plot(*X[y == label].T, marker, color=colour, markersize=5, alpha=0.7, label=f"label {label}")
axis.plot(*X[wrong].T, "x", color="black", markersize=9, label="flipped")
axis.plot(*X[found].T, "o", color="black", fillstyle="none", markersize=14, label="worth a second look")
axis.set(xlabel="$x_0$", ylabel="$x_1$")
axis.legend(loc="upper right", fontsize="small", ncols=2)
axis.set_ylim(top=1.9)
plt.show()
