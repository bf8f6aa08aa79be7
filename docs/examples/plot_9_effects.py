"""
Effects of columns with credible bands
======================================

Which columns matter, and how: the average probability as one column varies, with 95 % bands.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from gpclass import GaussianProcessClassifier
from gpclass.plotting import EffectDisplay, ImportanceDisplay

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

# %%
# The bands of the columns that do not matter contain a constant.
clf = GaussianProcessClassifier(random_state=0).fit(table, y)
EffectDisplay.from_estimator(clf, table)

# %%
# Sex acts through its interaction with age: its total share is larger than its share alone.
ImportanceDisplay.from_estimator(clf, table, y)

# %%
EffectDisplay.from_estimator(clf, table, [("age", "sex")], kind="latent")
plt.show()
