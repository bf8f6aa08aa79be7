"""
Which rows should be labelled next?
===================================

Labels are expensive. Ask for those that tell most about the latent function.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from gpclass import GaussianProcessClassifier, active
from gpclass.kernels import RBF
from gpclass.plotting import PredictiveContourDisplay

# %%
# A pool of 300 rows without labels. Every run begins with six labels and asks for one at a time: at random, or
# where the label has the largest mutual information with the latent function (BALD).


def run(seed, informative, n_labels=32):
    pool, labels = make_moons(300, noise=0.2, random_state=seed)
    X_test, y_test = make_moons(400, noise=0.2, random_state=100 + seed)
    rng = np.random.default_rng(seed)
    rows = [*rng.choice(np.flatnonzero(labels == 0), 3), *rng.choice(np.flatnonzero(labels == 1), 3)]
    losses = []
    while True:
        model = GaussianProcessClassifier(16.0 * RBF(0.8), optimizer=None).fit(pool[rows], labels[rows])
        losses.append(-model.predict_log_proba(X_test)[np.arange(400), y_test].mean())
        if len(rows) == n_labels:
            return losses, model, pool[rows], labels[rows]
        best = active.query(model, pool, score="bald") if informative else rng.integers(300, size=1)
        rows.append(int(best[0]))


# %%
# On the left the mean log loss of four runs. On the right one of them: the labels lie along the boundary and
# where there were no labels before.

fig, axes = plt.subplots(1, 2, figsize=(9.0, 3.8), layout="constrained")
for name, informative, line in (("at random", False, "--"), ("most informative", True, "-")):
    runs = [run(seed, informative) for seed in range(4)]
    axes[0].plot(
        range(6, 33), np.mean([losses for losses, *_ in runs], axis=0), line, color="#0072B2", label=name
    )
axes[0].set(xlabel="number of labels", ylabel="mean of four runs", title="Log loss on other rows")
axes[0].legend()
_, model, X, y = runs[0]
PredictiveContourDisplay.from_estimator(model, X, y, ax=axes[1], eps=0.5, legend=False)
axes[1].set_title("32 labels that the model asked for")
plt.show()
