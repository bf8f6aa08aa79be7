"""
Three classes
=============

One model with a latent function for each class. Colours mix where the classes are uncertain.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine

from gpclass import GaussianProcessClassifier
from gpclass.plotting import PredictiveContourDisplay

wine = load_wine(as_frame=True)
X, y = wine.data[["alcohol", "flavanoids"]], wine.target_names[wine.target]
model = GaussianProcessClassifier(random_state=0).fit(X, y)
print(f"accuracy on the training rows: {model.score(X, y):.2f}")
PredictiveContourDisplay.from_estimator(model, X, y, latent_std=True, eps=0.2, grid_resolution=60)
plt.show()
