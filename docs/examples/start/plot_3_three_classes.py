"""
Three classes
=============

One model with a latent function for each class. Colours are paler where the class is less certain.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine

from gpclass import GaussianProcessClassifier
from gpclass.plotting import PredictiveContourDisplay

# %%
# Three cultivars of wine, and two of the thirteen columns so that the model can be drawn. One model learns all
# classes, and the probabilities of a row sum to one.

wine = load_wine(as_frame=True)
X, y = wine.data[["alcohol", "flavanoids"]], wine.target_names[wine.target]
model = GaussianProcessClassifier(random_state=0).fit(X, y)
print(f"accuracy on the training rows: {model.score(X, y):.2f}")

# %%
# On the left the regions of the classes, on the right the standard deviation of the latent functions: it is large
# where there are no wines, however sure the colours on the left may look.

PredictiveContourDisplay.from_estimator(model, X, y, latent_std=True, eps=0.2, grid_resolution=60)
plt.show()
