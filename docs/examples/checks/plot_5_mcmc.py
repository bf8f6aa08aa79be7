"""
Have the Markov chains converged?
=================================

Two samplers of the same posterior. Both accept most proposals, and only one can be trusted.
"""

import warnings

import matplotlib.pyplot as plt

from gpclass import GaussianProcessClassifier
from gpclass.datasets import interval
from gpclass.kernels import RBF
from gpclass.mcmc import HMC, MCMC, BlockMetropolis

# %%
# Block Metropolis proposes three neighbouring latent values at a time from their conditional prior. Hamiltonian
# Monte Carlo moves all of them at once, in coordinates in which they are nearly independent.

X, y, X_test, _ = interval()
samplers = {
    "block Metropolis, blocks of 3": BlockMetropolis(3, adapt_size=False),
    "Hamiltonian Monte Carlo": HMC(),
}
fig, axes = plt.subplots(
    2, 2, figsize=(9.6, 5.0), width_ratios=[3, 2], sharex="col", sharey="col", layout="constrained"
)
for (trace, curve), (name, sampler) in zip(axes, samplers.items(), strict=True):
    model = GaussianProcessClassifier(
        9.0 * RBF(15.0), inference=MCMC(sampler, n_draws=1000), optimizer=None, random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the first sampler would give one: its chains have not converged
        model.fit(X, y)
    chains, numbers = model.chains_, model.chains_.diagnostics()
    print(f"{name}: {chains.accept.mean():.0%} of the proposals were accepted")
    for k, colour in enumerate(("#0072B2", "#E69F00", "#009E73", "#CC79A7")):
        trace.plot(chains.f[k, :300, 10], color=colour, linewidth=0.7)
    trace.set_title(
        f"{name}: largest R-hat {numbers.rhat.max():.2f}, {numbers.ess_bulk.min():.0f} effective draws"
    )
    trace.set_ylabel("one latent value")
    low, high = model.predict_interval(X_test)
    curve.fill_between(X_test[:, 0], low, high, color="#0072B2", alpha=0.25, linewidth=0)
    curve.plot(X_test, model.predict_proba(X_test)[:, 1], color="#0072B2")
    curve.set(ylabel="p(class 1)", title="prediction")
axes[1, 0].set_xlabel("draw")
axes[1, 1].set_xlabel("$x$")
plt.show()

# %%
# Chains that have converged overlap, R-hat is below 1.01, and there are hundreds of effective draws. A high rate
# of acceptance means nothing by itself: small blocks are accepted because they hardly move.
