"""
Which method? Compare them
==========================

All methods on the same rows, beside classifiers of scikit-learn, with the findings in words.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_moons

from gpclass import compare
from gpclass.mcmc import MCMC
from gpclass.plotting import ComparisonDisplay

# %%
# A hundred rows to learn from, and a thousand to score the probabilities on. Every method learns its own
# hyperparameters.

X, y = make_moons(100, noise=0.3, random_state=1)
X_test, y_test = make_moons(1000, noise=0.3, random_state=2)
methods = {
    "Laplace": "laplace",
    "EP": "ep",
    "VI": "vi",
    "Dirichlet": "dirichlet",
    "MCMC": MCMC(n_draws=600),
    "logistic regression": "logistic-regression",
    "gradient boosting": "gradient-boosting",
}
result = compare(X, y, methods=methods, X_test=X_test, y_test=y_test, random_state=0)
print(result.to_text(80))

# %%
# The same in a picture: log loss, log evidence where it exists, and calibration.

ComparisonDisplay(result).plot()
plt.show()
