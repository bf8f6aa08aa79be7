"""
Which columns matter, and how sure is that?
===========================================

Two columns that act only together are found, and every share has a credible interval.
"""

import matplotlib.pyplot as plt
import numpy as np

from gpclass import GaussianProcessClassifier
from gpclass.plotting import ImportanceDisplay

# %%
# Of six columns the first acts alone, the second and the third through their product, and the others not at all.

rng = np.random.default_rng(0)
X = rng.uniform(-1.0, 1.0, (300, 6))
f = 5.0 * X[:, 0] + 10.0 * X[:, 1] * X[:, 2]
y = rng.random(300) < 1.0 / (1.0 + np.exp(-f))
model = GaussianProcessClassifier(random_state=0).fit(X[:200], y[:200])

# %%
# The first-order share is the part of the variance of the latent function that a column explains alone; the total
# share includes its interactions. The cost is what the log loss of rows that were not used in the fit increases
# by when the column is permuted.

table = model.importance(X[200:], y[200:])
print(table)
ImportanceDisplay(table).plot()
plt.show()
