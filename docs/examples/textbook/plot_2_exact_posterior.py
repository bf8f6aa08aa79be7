"""
The exact posterior beside its approximations
=============================================

Draws from the prior, accepted with the probability of the labels, are exact. They show what approximations miss.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import norm

from gpclass import GaussianProcessClassifier
from gpclass.kernels import RBF
from gpclass.likelihoods import Probit
from gpclass.sampling import posterior_by_rejection

# %%
# Five rows and a kernel with a large variance: the posterior of the latent values is far from Gaussian.

X, y = np.array([[0.0], [0.8], [1.5], [2.5], [4.0]]), np.array([1, 1, -1, 1, 1])
kernel = 30.0 * RBF(1.0)
exact = posterior_by_rejection(Probit(), kernel(X), y.astype(float), 20_000, rng=0)
print(f"{exact.acceptance_rate:.1%} of the proposals were accepted; log evidence {exact.log_mass:.3f}")

# %%
# The rate of acceptance is the evidence. EP's is close, that of Laplace's method is too small, and that of
# variational inference is a lower bound.

fig, axes = plt.subplots(1, 2, figsize=(9.0, 3.6), sharey=True, layout="constrained")
f = np.linspace(-18.0, 22.0, 300)
for name, colour, line in (("laplace", "#D55E00", "--"), ("ep", "#0072B2", "-"), ("vi", "#009E73", ":")):
    model = GaussianProcessClassifier(kernel, likelihood="probit", inference=name, optimizer=None).fit(X, y)
    print(f"{name:8} log evidence {model.log_marginal_likelihood_value_:.3f}")
    mean, std = model.predict_latent(X, return_std=True)
    for axis, i in zip(axes, (2, 4), strict=True):
        axis.plot(f, norm.pdf(f, mean[i], std[i]), line, color=colour, label=name)
for axis, i in zip(axes, (2, 4), strict=True):
    axis.hist(exact.draws[:, i], bins=80, density=True, color="0.75", label="exact")
    axis.set(title=f"row {i}, label {y[i]:+d}", xlabel="latent value")
axes[0].set_ylabel("posterior density")
axes[1].legend()
plt.show()

# %%
# The posterior is skewed, because a label makes only one sign of the latent value improbable. Laplace's Gaussian
# is centred at the mode, which is too close to zero. EP has the mean and the variance nearly right, and these
# determine the prediction.
