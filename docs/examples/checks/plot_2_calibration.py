"""
Are the probabilities right?
============================

A calibration curve from leave-one-out probabilities, which need no further rows, and one from test rows.
"""

import matplotlib.pyplot as plt
from sklearn.calibration import CalibrationDisplay
from sklearn.datasets import make_moons

from gpclass import GaussianProcessClassifier

X, y = make_moons(200, noise=0.35, random_state=3)
X_test, y_test = make_moons(2000, noise=0.35, random_state=4)
model = GaussianProcessClassifier(random_state=0).fit(X, y)

# %%
# Of the rows with a probability near 0.8, about 80 % should be of class 1: the points should lie on the diagonal.
# Scikit-learn's display takes the model, or its probabilities. The points of 200 rows scatter around the diagonal
# more than those of 2,000.

first = CalibrationDisplay.from_predictions(
    y, model.loo_proba_[:, 1], name="leave one out, 200 rows", n_bins=6
)
CalibrationDisplay.from_estimator(model, X_test, y_test, name="2,000 test rows", n_bins=6, ax=first.ax_)
plt.show()
