"""What --help says of each command; a backspace alone in a line keeps click from joining those after it."""

from __future__ import annotations

GPCLASS = """
Gaussian-process classification of tables: probabilities with their uncertainty.

\b
gpclass compare                               every method on a small problem
gpclass compare data.csv --target y           every method on your data
gpclass fit data.csv --target y -o model.gpc  a model of your data
gpclass predict model.gpc new.csv -o out.csv  probabilities of new rows

DATA is CSV (also .csv.gz), Parquet or Feather, with a header. Each command has its own --help with
examples. Exit codes: 0 fine, 1 something is wrong with the input, 2 the command was called wrongly, 130
interrupted.
"""

COMPARE = """
Compare the methods of inference on a problem.

Every method is fitted to the same rows, learns its hyperparameters, and predicts rows that it has not
seen. Without DATA the problem is one that comes along. With DATA, rows are predicted by five-fold
cross-validation, unless --cv or --test-fraction say otherwise.

\b
Examples:
  gpclass compare -o figure.png --html report.html
  gpclass compare --problem moons -m laplace -m ep
  gpclass compare data.csv --target species
  gpclass compare data.parquet --target y --test-fraction 0.3 -m vi -l logit --json
"""

FIT = """
Fit a model to the table DATA and keep it in a file.

Numbers are standardised, categories and truth values become columns of 0 and 1; all this is kept in the
model file, so that predict takes tables as they are. With --cv the model is of all rows and its scores
are of models of parts of them; with --test-fraction the model has not seen the rows that it is scored
on.

\b
Examples:
  gpclass fit data.csv --target species
  gpclass fit data.csv.gz --target y --cv 5 -o model.gpc
  gpclass fit data.csv --target ill --inference ep --kernel matern52 --test-fraction 0.2
  gpclass fit data.parquet --target y --drop name,id --categorical ward --impute
"""

PREDICT = """
Predict the rows of DATA with a model file.

The result has a row for each of DATA: the most probable class, the probability of every class (p_...),
and the credible interval of that probability (low_..., high_...), which tells mixed evidence from a lack
of it. Columns of DATA may be in any order.

With --cost there is also the decision of least expected cost. Costs are JSON, in a file or in place:
rows are true classes and columns decisions, in the order of the classes, or both by name; or CSV with
the decisions in its header and the true classes in its first column.

\b
Examples:
  gpclass predict model.gpc new.csv
  gpclass predict model.gpc new.csv -o out.csv --keep id --level 0.9
  gpclass predict model.gpc new.csv --cost '[[0, 1], [5, 0]]' --reject 0.5
  gpclass predict model.gpc new.csv --cost costs.csv
"""

CHECK = """
Measure how wrong the approximation in a model file is.

Draws from the approximate posterior are weighed by the exact one: that corrects the evidence, and shows
by how much probabilities shift. The last line is the verdict.

\b
Examples:
  gpclass check model.gpc
  gpclass check model.gpc --draws 10000 --json
"""

PLOT = """
Draw a model file.

One column is drawn as the latent function above the probability, two as contours over the plane, more as
the relevance of each. Chains of a sampled model are drawn by --kind trace.

\b
Examples:
  gpclass plot model.gpc
  gpclass plot model.gpc -o figure.pdf --kind relevance --top 10
"""

INFO = """
Say what is in a model file: data, classes, kernel, evidence, scores, and how columns are encoded.

\b
Examples:
  gpclass info model.gpc
  gpclass info model.gpc --json
"""
