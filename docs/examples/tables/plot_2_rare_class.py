"""
A rare class
============

Keep the probabilities as they are, and let the costs decide. Weights would spoil the probabilities.
"""

import matplotlib.pyplot as plt
import numpy as np

from gpclass import GaussianProcessClassifier, bayes_decision

# %%
# Three rows in a hundred are faults. An inspection costs 1, and a fault that is missed costs 30.

rng = np.random.default_rng(0)
y = (np.arange(4800) % 33 == 0).astype(int)
X = rng.normal(np.where(y == 1, 1.7, 0.0)[:, None], np.where(y == 1, 0.5, 1.0)[:, None], (4800, 2))
X, y, X_test, y_test = X[:800], y[:800], X[800:], y[800:]
costs = np.array([[0.0, 1.0], [30.0, 1.0]])  # a row for each truth, a column for each decision

plain = GaussianProcessClassifier("rbf", random_state=0).fit(X, y)
weighted = GaussianProcessClassifier("rbf", class_weight="balanced", random_state=0).fit(X, y)
p, q = (model.predict_proba(X_test) for model in (plain, weighted))
print(f"faults among the test rows: {y_test.mean():.1%}; mean probability {p[:, 1].mean():.1%}")
print(f"mean probability with balanced weights: {q[:, 1].mean():.1%}")

# %%
# The most probable class is hardly ever a fault. The decision with the smallest expected cost inspects far more
# rows, rows unlike all others included, and is cheaper than inspecting all rows or none.

decisions = {
    "inspect nothing": np.zeros(len(y_test), int),
    "inspect everything": np.ones(len(y_test), int),
    "most probable class": p.argmax(axis=1),
    "smallest expected cost": bayes_decision(p, costs),
}
paid = {name: costs[y_test, decision].mean() for name, decision in decisions.items()}
for name, decision in decisions.items():
    print(f"{name}: {decision.mean():.1%} of the rows inspected, cost per row {paid[name]:.2f}")

fig, axes = plt.subplots(1, 2, figsize=(9.6, 3.8), layout="constrained")
x = np.linspace(-4.0, 4.0, 80)
chosen = bayes_decision(plain.predict_proba(np.stack(np.meshgrid(x, x), axis=-1).reshape(-1, 2)), costs)
axes[0].contourf(x, x, chosen.reshape(80, 80), levels=[0.5, 1.5], colors=["#E69F00"], alpha=0.35)
axes[0].plot(*X[y == 0].T, ".", color="0.6", markersize=4, label="no fault")
axes[0].plot(*X[y == 1].T, "s", color="#D55E00", markersize=5, label="fault")
axes[0].set(xlabel="$x_0$", ylabel="$x_1$", title="Rows in the shaded region are inspected")
axes[0].legend(loc="lower left")
bars = axes[1].barh(list(paid), list(paid.values()), color=["0.6", "0.6", "0.6", "#0072B2"])
axes[1].bar_label(bars, fmt="%.2f", padding=3)
axes[1].invert_yaxis()
axes[1].set(xlabel="cost per row", title="What the decisions cost")
plt.show()
