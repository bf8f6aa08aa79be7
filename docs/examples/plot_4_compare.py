"""
Which method? Compare them
==========================

Several methods on the same rows, beside classifiers of scikit-learn, with the findings in words.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_moons

from gpclass import compare
from gpclass.plotting import ComparisonDisplay

X, y = make_moons(100, noise=0.3, random_state=1)
X_test, y_test = make_moons(1000, noise=0.3, random_state=2)
methods = ("laplace", "ep", "vi", "sklearn-gp", "logistic-regression", "gradient-boosting")
result = compare(X, y, methods=methods, X_test=X_test, y_test=y_test, random_state=0)
for sentence in result.findings:
    print(sentence)

# %%
# The table, as a notebook shows it:

result

# %%
# And the figure: log loss, log evidence where there is one, and calibration.

ComparisonDisplay(result).plot()
plt.show()
