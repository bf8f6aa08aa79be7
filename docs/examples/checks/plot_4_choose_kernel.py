"""
Kernels compared by their evidence
==================================

The evidence of the training rows ranks kernels much as held-out rows do.
"""

import matplotlib.pyplot as plt
import numpy as np

from gpclass import GaussianProcessClassifier

# %%
# A boundary that oscillates along one column and is linear in the other.

rng = np.random.default_rng(0)
X = rng.uniform(-3.0, 3.0, (1200, 2))
y = rng.random(1200) < 1.0 / (1.0 + np.exp(-4.0 * np.sin(2.5 * X[:, 0]) - 2.0 * X[:, 1]))
names = ("linear", "neural-network", "rbf-shared", "rbf", "matern12", "matern32", "matern52", "rational-quadratic")
scores = {}
for name in names:
    model = GaussianProcessClassifier(name, inference="ep", random_state=0).fit(X[:200], y[:200])
    proba = model.predict_log_proba(X[200:])[np.arange(1000), y[200:].astype(int)]
    scores[name] = model.log_marginal_likelihood_value_ / 200, proba.mean()

# %%
# Further up is better on held-out rows, and further to the right is better by the evidence, which has not seen those rows.

fig, axis = plt.subplots(figsize=(7.0, 4.2), layout="constrained")
for name, (evidence, score) in scores.items():
    axis.plot(evidence, score, "o", color="#0072B2")
    axis.annotate(name, (evidence, score), (6, -3), textcoords="offset points", fontsize="small")
axis.margins(x=0.25, y=0.1)
axis.set(xlabel="log evidence per training row", ylabel="mean log probability of 1,000 other labels")
plt.show()

# %%
# With ``kernel=None``, the default, gpclass compares kernels in this way by itself, transforms of the columns and a linear part included:

model = GaussianProcessClassifier(random_state=0).fit(X[:200], y[:200])
print(model.kernel_)
