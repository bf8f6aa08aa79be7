"""
Which columns matter?
=====================

One length scale per column tells how fast the class changes along it.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine

from gpclass import GaussianProcessClassifier
from gpclass.plotting import RelevanceDisplay

wine = load_wine(as_frame=True)
model = GaussianProcessClassifier("rbf", inference="laplace").fit(wine.data, wine.target == 1)

# %%
# Open markers are length scales that ended at a bound: those columns do not matter.

RelevanceDisplay.from_estimator(model, wine.data)
plt.show()
