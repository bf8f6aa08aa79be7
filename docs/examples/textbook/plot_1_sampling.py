"""
Inversion, rejection and importance sampling
============================================

Three textbook ways to draw from a density, or to average over it, without a Markov chain.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import norm, t

from gpclass.sampling import importance, inversion, rejection

# %%
# A density with two modes, known up to a constant.


def log_density(x):
    return np.logaddexp(-0.5 * ((x + 2.0) / 0.6) ** 2, np.log(0.5) - 0.5 * (x - 2.0) ** 2)


def density(x):
    return np.exp(log_density(x))


mass = np.sqrt(2.0 * np.pi) * (0.6 + 0.5)
inverted = inversion(pdf=density, domain=(-6.0, 7.0), size=4000, rng=0)
kept = rejection(density, 1.01, (-6.0, 7.0), 4000, rng=0)
print(f"rejection: {kept.acceptance_rate:.0%} kept, mass {np.exp(kept.log_mass):.2f}, in truth {mass:.2f}")

# %%
# Importance sampling weights draws of another density. A proposal with heavy tails gives the probability that x
# is positive, with an error that can be trusted. A narrow one misses a mode, and Pareto's k-hat, the shape of the
# tail of the weights, shows it.

truth = 0.6 * norm.sf(2.0 / 0.6) / 1.1 + 0.5 * norm.sf(-2.0) / 1.1
proposals = {"heavy tails": t(df=3, scale=2.5), "too narrow": norm(-2.0, 1.2)}
for name, proposal in proposals.items():
    found = importance(lambda x: x > 0.0, log_density, proposal, 4000, rng=0)
    print(
        f"{name}: {found.value:.3f} ± {found.standard_error:.3f}, in truth {truth:.3f}; "
        f"k-hat {found.khat:.2f}, reliable: {found.reliable}"
    )

x = np.linspace(-6.0, 7.0, 400)
fig, axes = plt.subplots(1, 3, figsize=(9.6, 3.2), sharey=True, layout="constrained")
for axis, name, draws in zip(axes, ("inversion", "rejection"), (inverted, kept.draws), strict=False):
    axis.hist(draws, bins=60, density=True, color="#56B4E9", alpha=0.7)
    axis.set_title(f"{len(draws)} draws by {name}")
for (name, proposal), colour in zip(proposals.items(), ("#009E73", "#D55E00"), strict=True):
    axes[2].plot(x, proposal.pdf(x), "--", color=colour, label=name)
axes[2].set_title("proposals for weighting")
axes[2].legend()
for axis in axes:
    axis.plot(x, density(x) / mass, color="black", linewidth=1.2)
    axis.set_xlabel("$x$")
plt.show()
