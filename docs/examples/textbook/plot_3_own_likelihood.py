"""
A likelihood of your own
========================

One method describes an experiment in which an observer who sees nothing is still right half of the time.
"""

from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import log_ndtr, ndtr

from gpclass import GaussianProcessClassifier
from gpclass.kernels import RBF, ConstantKernel
from gpclass.likelihoods import BinaryLikelihood

# %%
# In a two-alternative forced choice the probability of a correct answer is between one half and one. The class
# needs the logarithm of the probability of a label, and nothing else: derivatives, expectations and moments
# follow by quadrature.


@dataclass(frozen=True, slots=True)
class ForcedChoice(BinaryLikelihood):
    def log_prob(self, y, f):
        return np.where(y > 0, np.log1p(ndtr(f)), log_ndtr(-f)) - np.log(2.0)


# %%
# An observer answers at 120 contrasts. Both models learn their hyperparameters by variational inference.

rng = np.random.default_rng(1)
contrast = np.sort(rng.uniform(0.0, 10.0, 120))[:, None]
truth = 0.5 + 0.5 * ndtr(1.2 * (contrast[:, 0] - 5.0))
answers = (rng.random(120) < truth).astype(int)  # 1 is right
kernel = ConstantKernel(4.0) * RBF(3.0) + ConstantKernel(4.0)
fig, axes = plt.subplots(1, 2, figsize=(9.0, 3.6), sharey=True, layout="constrained")
for axis, (name, likelihood) in zip(
    axes, {"probit": "probit", "own likelihood": ForcedChoice()}.items(), strict=True
):
    model = GaussianProcessClassifier(kernel, likelihood=likelihood, inference="vi").fit(contrast, answers)
    low, high = model.predict_interval(contrast)
    axis.fill_between(
        contrast[:, 0], low, high, color="#0072B2", alpha=0.2, linewidth=0, label="95 % interval"
    )
    axis.plot(contrast, model.predict_proba(contrast)[:, 1], color="#0072B2", label="model")
    axis.plot(contrast, truth, "--", color="black", linewidth=1.0, label="truth")
    axis.set(title=f"{name}: log evidence {model.log_marginal_likelihood_value_:.1f}", xlabel="contrast")
axes[0].set_ylabel("probability of a right answer")
axes[1].legend(loc="lower right")
plt.show()
