"""
What a kernel assumes
=====================

A kernel says which functions are plausible before any label is seen. Each panel shows four of them.
"""

import matplotlib.pyplot as plt
import numpy as np

from gpclass.kernels import RBF, ExpSineSquared, Linear, Matern, NeuralNetwork

# %%
# A smooth kernel suits effects that change slowly, a rough one boundaries with details, a linear one effects that
# grow without end, and a periodic one the time of a day or of a year. Sums of kernels are sums of such functions.

kernels = {
    "rbf: very smooth": RBF(1.0),
    "matern32: once differentiable": Matern(1.0, nu=1.5),
    "matern12: rough": Matern(1.0, nu=0.5),
    "linear": Linear(),
    "neural-network: steps that level off": 2.0 * NeuralNetwork(),
    "exp-sine-squared: periodic": ExpSineSquared(1.0, 2.0),
}
x = np.linspace(-3.0, 3.0, 200)[:, None]
z = np.random.default_rng(3).normal(size=(len(x), 4))
fig, axes = plt.subplots(2, 3, figsize=(9.0, 4.4), sharex=True, layout="constrained")
for axis, (name, kernel) in zip(axes.flat, kernels.items(), strict=True):
    L = np.linalg.cholesky(kernel(x) + 1e-6 * np.eye(len(x)))
    axis.plot(x, L @ z, linewidth=1.2)
    axis.set_title(name, fontsize="medium")
    axis.set_yticks([])
plt.show()
