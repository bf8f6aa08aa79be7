"""
A kernel on words
=================

Inputs need not be numbers. Any kernel of scikit-learn works, also one of your own on strings.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.gaussian_process.kernels import GenericKernelMixin, Kernel

from gpclass import GaussianProcessClassifier

# %%
# Two words are similar if they share many pieces of a few letters. The kernel is the number of common pieces,
# divided by the geometric mean of the numbers of pieces.


class Pieces(GenericKernelMixin, Kernel):
    def __init__(self, size=4):
        self.size = size

    def __call__(self, X, Y=None, eval_gradient=False):
        A, B = ([self.pieces(word) for word in words] for words in (X, X if Y is None else Y))
        return np.array([[len(a & b) / np.sqrt(len(a) * len(b)) for b in B] for a in A])

    def pieces(self, word):
        return {word[i : i + self.size] for i in range(len(word) - self.size + 1)}

    def diag(self, X):
        return np.ones(len(X))

    def is_stationary(self):
        return False


# %%
# Random sequences of the letters A, C, G and T. Those of class 1 contain GATTACA.

rng = np.random.default_rng(0)
y, X = np.arange(160) % 2, []
for label, at in zip(y, rng.integers(0, 18, 160), strict=True):
    letters = rng.choice(list("ACGT"), 24)
    letters[at : at + 7] = list("GATTACA") if label else letters[at : at + 7]
    X.append("".join(letters))
model = GaussianProcessClassifier(4.0 * Pieces() + 1.0, random_state=0).fit(X[:80], y[:80])
print(f"accuracy on 80 other sequences: {model.score(X[80:], y[80:]):.2f}")

# %%
# Sequences with the motif resemble each other (left). Those not used in the fit are on the right.

fig, axes = plt.subplots(1, 2, figsize=(9.0, 3.8), width_ratios=[1, 1.2], layout="constrained")
axes[0].imshow(Pieces()([*X[:80:2], *X[1:80:2]]), cmap="cividis", vmin=0.0, vmax=0.4)
axes[0].set(title="similarity", xticks=[20, 60], xticklabels=["random", "motif"], yticks=[])
p = [model.predict_proba(X[80 + label :: 2])[:, 1] for label in (0, 1)]
axes[1].hist(p, bins=np.linspace(0.0, 1.0, 11), label=["random", "motif"])
axes[1].set(xlabel="probability of the motif", ylabel="sequences")
axes[1].legend()
plt.show()
