"""
The evidence as a landscape
===========================

The evidence judges hyperparameters without a validation set, and different approximations see different landscapes.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_moons

from gpclass import GaussianProcessClassifier
from gpclass.kernels import RBF, ConstantKernel
from gpclass.plotting import EvidenceDisplay

# %%
# Two moons with some noise, and a kernel with two hyperparameters: the variance of the latent function and its
# length scale. The line is the path of learning, the star its end.

X, y = make_moons(60, noise=0.25, random_state=0)
kernel = ConstantKernel(1.0, (1e-2, 1e6)) * RBF(3.0, (1e-2, 1e2))
fig, axes = plt.subplots(1, 2, figsize=(9.6, 3.8), sharey=True, layout="constrained")
for axis, method in zip(axes, ("laplace", "ep"), strict=True):
    model = GaussianProcessClassifier(kernel, inference=method).fit(X, y)
    EvidenceDisplay.from_estimator(model, limits=((0.1, 1e5), (0.1, 10.0)), grid_resolution=13, ax=axis)
    axis.set_title({"laplace": "Laplace", "ep": "EP"}[method], pad=26)
    print(f"{method}: log evidence {model.log_marginal_likelihood_value_:.1f} at {model.kernel_}")
plt.show()

# %%
# Short length scales can explain any labels, so that each gets little probability. Long ones cannot explain these
# labels. The best ones lie between: this is Occam's razor. Where the classes are well separated, Laplace's method
# underestimates the evidence of large variances and prefers a smaller one; EP is close to the exact evidence.
