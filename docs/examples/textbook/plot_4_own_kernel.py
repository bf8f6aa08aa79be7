"""
A kernel on words
=================

Inputs need not be numbers. Any kernel of scikit-learn works, one of your own on strings included.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.gaussian_process.kernels import GenericKernelMixin, Kernel

from gpclass import GaussianProcessClassifier
from gpclass.kernels import ConstantKernel

# %%
# Two words are similar if they share many triples of letters. The kernel is the cosine of the angle between their counts.


class Triples(GenericKernelMixin, Kernel):
    def __call__(self, X, Y=None, eval_gradient=False):
        A, B = ([{x[i : i + 3] for i in range(len(x) - 2)} for x in rows] for rows in (X, X if Y is None else Y))
        return np.array([[len(a & b) / np.sqrt(len(a) * len(b)) for b in B] for a in A])

    def diag(self, X):
        return np.ones(len(X))

    def is_stationary(self):
        return False


# %%
# Random sequences of the letters A, C, G and T. Those of one class contain the motif GATTACA, with one letter of it mistaken half of the time.

rng = np.random.default_rng(0)


def sequence(motif):
    letters = rng.choice(list("ACGT"), 24)
    if motif:
        start = rng.integers(0, 17)
        letters[start : start + 7] = list("GATTACA")
        if rng.random() < 0.5:
            letters[start + rng.integers(7)] = rng.choice(list("ACGT"))
    return "".join(letters)


y = np.repeat([0, 1], 75)
X = [sequence(label) for label in y]
train = np.arange(150) % 3 != 0
rows, others = ([x for x, used in zip(X, mask, strict=True) if used] for mask in (train, ~train))
model = GaussianProcessClassifier(ConstantKernel(4.0) * Triples() + ConstantKernel(1.0)).fit(rows, y[train])
print(f"accuracy on {len(others)} other sequences: {model.score(others, y[~train]):.2f}")

# %%
# The prior covariance, sorted by class, and the probabilities of the sequences that were not used in the fit.

order = [*np.argsort(y[train], kind="stable")]
fig, axes = plt.subplots(1, 2, figsize=(9.0, 3.8), width_ratios=[1, 1.2], layout="constrained")
image = axes[0].imshow(Triples()([rows[i] for i in order]), cmap="cividis", vmin=0.0, vmax=0.4)
fig.colorbar(image, ax=axes[0], label="similarity")
axes[0].set(title="prior covariance", xticks=[25, 75], xticklabels=["random", "motif"], yticks=[])
p = model.predict_proba(others)[:, 1]
low, high = model.predict_interval(others)
for i, (label, colour, marker) in enumerate(((0, "#E69F00", "o"), (1, "#0072B2", "s"))):
    at = np.flatnonzero(y[~train] == label)
    axes[1].errorbar(at, p[at], [p[at] - low[at], high[at] - p[at]], fmt=marker, color=colour, markersize=4, linewidth=0.8)
axes[1].set(title="probability of the motif, 95 % intervals", xlabel="sequence", ylim=(0.0, 1.0))
plt.show()
