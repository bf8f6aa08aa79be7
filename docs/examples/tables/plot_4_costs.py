"""
Decisions under costs, with a reject option
===========================================

The same probabilities lead to different decisions, depending on what errors cost.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from gpclass import GaussianProcessClassifier, bayes_decision

X, y = make_moons(120, noise=0.3, random_state=0)
model = GaussianProcessClassifier(random_state=0).fit(X, y)
x0, x1 = np.linspace(-2.0, 3.0, 120), np.linspace(-1.6, 2.2, 100)
proba = model.predict_proba(np.stack(np.meshgrid(x0, x1), axis=-1).reshape(-1, 2))

# %%
# Rows of a cost matrix are true classes, columns are decisions. In the second panel it costs ten times as much to
# miss class 1 as to miss class 0. In the third, leaving a case undecided costs 0.4.

equal, unequal = [[0, 1], [1, 0]], [[0, 1], [10, 0]]
panels = {
    "equal costs": bayes_decision(proba, equal),
    "class 1 is costly to miss": bayes_decision(proba, unequal),
    "with a reject option": bayes_decision(proba, unequal, reject=0.4),
}
fig, axes = plt.subplots(1, 3, figsize=(9.6, 3.4), sharey=True, layout="constrained")
for axis, (name, decision) in zip(axes, panels.items(), strict=True):
    shown = decision.reshape(len(x1), len(x0))
    levels, colours = [-1.5, -0.5, 0.5, 1.5], ["#F0E442", "#56B4E9", "#E69F00"]
    axis.contourf(x0, x1, shown, levels=levels, colors=colours)
    axis.scatter(*X.T, c=np.where(y == 1, "black", "white"), edgecolors="grey", s=14)
    axis.set(title=name, xlabel="$x_1$")
axes[0].set_ylabel("$x_2$")
for colour, name in zip(
    ("#56B4E9", "#E69F00", "#F0E442"), ("decide 0", "decide 1", "undecided"), strict=True
):
    axes[2].plot([], [], "s", color=colour, label=name)
axes[2].legend(loc="lower left", fontsize="small")
plt.show()
