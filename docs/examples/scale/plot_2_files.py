"""
Rows that stay in their file
============================

A fit reads a Parquet file in blocks, and never holds all of its rows in memory.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from gpclass import GaussianProcessClassifier
from gpclass.kernels import RBF

# %%
# Fifty thousand rows of a checked pattern with noisy labels. The file could as well have a hundred million.

rng = np.random.default_rng(0)
X = rng.uniform(-3.0, 3.0, (50_000, 2))
y = rng.random(len(X)) < 1.0 / (1.0 + np.exp(-2.0 * np.sin(2.0 * X[:, 0]) * np.sin(2.0 * X[:, 1])))
path = Path(tempfile.mkdtemp()) / "rows.parquet"
pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "label": y}).to_parquet(path)

# %%
# The first model has the file and the name of the column with the labels, the second one the first 500 rows.

kernel = 4.0 * RBF([1.0, 1.0])
full = GaussianProcessClassifier(kernel, inducing=80, random_state=0).fit(str(path), "label")
few = GaussianProcessClassifier(kernel, random_state=0).fit(
    pd.DataFrame(X[:500], columns=["a", "b"]), y[:500]
)
report = full.base_estimator_.inducing
print(f"{report.n_rows} rows, {report.n_inducing} inducing inputs, {report.passes} passes over the file")

# %%
# With more rows the pattern is sharper, and the credible intervals are narrower.

x = np.linspace(-3.0, 3.0, 80)
grid = pd.DataFrame(np.stack(np.meshgrid(x, x), axis=-1).reshape(-1, 2), columns=["a", "b"])
fig, axes = plt.subplots(1, 2, figsize=(8.6, 3.8), sharey=True, layout="constrained")
for axis, (name, model) in zip(axes, {"500 rows": few, "50,000 rows in a file": full}.items(), strict=True):
    low, high = model.predict_interval(grid)
    p = model.predict_proba(grid)[:, 1].reshape(80, 80)
    filled = axis.contourf(x, x, p, levels=np.linspace(0.0, 1.0, 21), cmap="cividis")
    axis.set(title=f"{name}, mean width of intervals {np.mean(high - low):.2f}", xlabel="a")
axes[0].set_ylabel("b")
fig.colorbar(filled, ax=axes, label="predicted p(y = 1)", ticks=[0.0, 0.5, 1.0])
plt.show()
