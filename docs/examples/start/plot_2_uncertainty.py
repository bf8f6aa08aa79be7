"""
Two kinds of uncertainty
========================

A probability of one half between the classes, and one far away from all rows: the credible interval tells them apart.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from gpclass import GaussianProcessClassifier
from gpclass.plotting import PredictiveContourDisplay

X, y = make_moons(120, noise=0.25, random_state=0)
model = GaussianProcessClassifier(random_state=0).fit(X, y)
print(model.kernel_)

# %%
# On the left the probability of class 1, on the right the width of its 95 % interval. Along the boundary between
# the moons the probability is one half and the interval is narrow: many rows of both classes say so. In the
# corners nothing is known, and the interval is wide.

fig, axes = plt.subplots(1, 2, figsize=(9.0, 3.8), layout="constrained")
display = PredictiveContourDisplay.from_estimator(model, X, y, ax=axes[0], eps=0.4, legend=False)
x0, x1 = display.x0, display.x1
low, high = model.predict_interval(np.stack(np.meshgrid(x0, x1), axis=-1).reshape(-1, 2))
width = (high - low).reshape(len(x1), len(x0))
filled = axes[1].contourf(x0, x1, width, levels=np.linspace(0.0, 1.0, 11), cmap="cividis")
fig.colorbar(filled, ax=axes[1], label="width of the 95 % interval")
axes[1].scatter(*X.T, c=np.where(y == 1, "black", "white"), edgecolors="grey", s=18)
axes[1].set(xlabel="$x_1$")
plt.show()
