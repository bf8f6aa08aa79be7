"""
Effects of columns with credible bands
======================================

How the average probability changes as one column varies, and how sure the model is of that.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from gpclass import GaussianProcessClassifier
from gpclass.plotting import EffectDisplay

# %%
# In this trial age helps women and harms men a little, the dose has an effect that rises and falls, and the last
# column has none.

rng = np.random.default_rng(0)
n = 250
table = pd.DataFrame(
    {
        "age": rng.uniform(20, 80, n),
        "dose": rng.gamma(2.0, 1.0, n),
        "sex": rng.choice(["female", "male"], n),
        "noise": rng.normal(size=n),
    }
)
slope = np.where(table["sex"] == "female", 1.0, -0.3)
f = slope * (table["age"] - 50) / 10 + 2.0 * np.sin(1.5 * table["dose"])
y = np.where(rng.random(n) < 1.0 / (1.0 + np.exp(-f)), "well", "ill")
model = GaussianProcessClassifier(random_state=0).fit(table, y)

# %%
# The lines are partial dependences. The bands are 95 % credible intervals of the average, so that a band which
# contains a horizontal line is consistent with no effect. Where rows are few (ticks at the bottom) the band
# widens.

EffectDisplay.from_estimator(model, table)

# %%
# The effect of age averages over women and men, for whom it differs. The joint effect of both columns shows it.

EffectDisplay.from_estimator(model, table, [("age", "sex")], kind="latent")
plt.show()
