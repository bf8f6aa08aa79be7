"""
A messy table, as it comes
==========================

Categories, missing values and a typing error need no preparation.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.metrics import log_loss

from gpclass import GaussianProcessClassifier
from gpclass.plotting import EffectDisplay

# %%
# A table of patients: text, booleans, dates and numbers. A tenth of the ages is missing, and so is a fifth of
# the wards.

rng = np.random.default_rng(0)
n = 500
table = pd.DataFrame(
    {
        "age": rng.normal(50.0, 15.0, n).round(),
        "pressure": rng.normal(120.0, 15.0, n).round(),
        "ward": rng.choice(["north", "south", "west"], n),
        "smoker": rng.random(n) < 0.3,
        "admitted": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 365, n), unit="D"),
    }
)
f = (table["age"] - 50) / 10 + 2.0 * table["smoker"] - 1.5 * (table["ward"] == "west")
y = np.where(rng.random(n) < 1.0 / (1.0 + np.exp(-f)), "ill", "well")
table.loc[rng.random(n) < 0.1, "age"] = np.nan
table.loc[rng.random(n) < 0.2, "ward"] = None
train, test = table[:200], table[200:]

# %%
# In one row somebody typed a blood pressure of 1,200,000. The first model has seen it, the second one has not.

outlier = train.copy()
outlier.loc[7, "pressure"] = 1.2e6
for name, rows in {"with the outlier": outlier, "without": train}.items():
    model = GaussianProcessClassifier(random_state=0).fit(rows, y[:200])
    print(f"log loss on 300 other rows, {name}: {log_loss(y[200:], model.predict_proba(test)):.3f}")

# %%
# The code of the columns is part of the model, so that new rows need no preparation either.

new = pd.DataFrame({"age": [70.0, np.nan], "pressure": [120.0, 120.0], "ward": ["west", None]})
new = new.assign(smoker=[True, False], admitted=pd.Timestamp("2024-06-01"))
print(pd.DataFrame(model.predict_proba(new), columns=model.classes_).round(2))

# %%
# What the model has learned, column by column. Missing values are a level of their own.

EffectDisplay.from_estimator(model, train, ["age", "ward", "smoker"])
plt.show()
