"""
Ordered classes
===============

Grades have an order. A model that knows it needs one latent function, and fewer rows.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_friedman1
from sklearn.metrics import log_loss

from gpclass import GaussianProcessClassifier

# %%
# A quality from 0 to 30 that depends on five of ten columns, recorded as four grades. There are 120 rows to learn
# from.

X, quality = make_friedman1(1000, noise=1.0, random_state=0)
y = 1 + np.digitize(quality, np.quantile(quality, [0.25, 0.5, 0.75]))
models = {
    "ordered": GaussianProcessClassifier("rbf", likelihood="ordinal", random_state=0),
    "unordered": GaussianProcessClassifier("rbf", likelihood="softmax", inference="vi", random_state=0),
}
for name, model in models.items():
    proba = model.fit(X[:120], y[:120]).predict_proba(X[120:])
    print(f"{name}: log loss {log_loss(y[120:], proba):.3f} on 880 other rows")

# %%
# The probability of each grade as one column varies, with the others in the middle. One latent function and three
# thresholds make the grades follow each other in order. Without the order there are four functions to learn from
# the same rows.

line = np.full((100, 10), 0.5)
line[:, 3] = np.linspace(0.0, 1.0, 100)
fig, axes = plt.subplots(1, 2, figsize=(9.0, 3.6), sharey=True, layout="constrained")
for axis, (name, model) in zip(axes, models.items(), strict=True):
    shades = ["#F0E442", "#E69F00", "#D55E00", "#8B3A00"]
    grades = axis.stackplot(line[:, 3], model.predict_proba(line).T, colors=shades)
    axis.set(title=f"{name} classes", xlabel="column $x_3$", ylim=(0.0, 1.0))
    axis.margins(x=0.0)
axes[0].set_ylabel("probability")
fig.legend(grades[::-1], ["grade 4", "grade 3", "grade 2", "grade 1"], loc="outside right")
plt.show()
