"""Write the page of combinations from the table that the library dispatches on."""

from __future__ import annotations

import sys
from pathlib import Path

from gpclass.learning.strategies import RULES, table

PAGE = Path(__file__).parent / "guide" / "combinations.md"

HEAD = """# What goes with what

Every fit is one combination of a method, a likelihood, where the rows are and what happens to the hyperparameters. This
page is made from the table that the library itself uses to choose a strategy, so it cannot differ from what happens.

- *Likelihood*: "two classes" stands for every likelihood with one latent function (`"probit"`, `"logit"`, `"cloglog"`,
  `"label_noise"`, your own). With three classes or more and `multi_class="joint"` the probit is the multinomial probit
  and the logit is softmax; `"one_vs_rest"` and `"one_vs_one"` fit two-class models. With `inference="dirichlet"` both
  names mean softmax, for two classes as well.
- *Rows*: all rows in memory, inducing inputs (`inducing=...`), or passes over rows that are not in memory (files,
  blocks, Dask collections, `partial_fit`).

"""


def page() -> str:
    """Return the page."""
    lines = ["| method | likelihood | all rows | inducing inputs | passes |", "|---|---|---|---|---|"]
    rows = [row for row in table() if row["hyperparameters"] == "learn"]
    for method in dict.fromkeys(row["method"] for row in rows):
        for likelihood in dict.fromkeys(row["likelihood"] for row in rows):
            found = [r for r in rows if r["method"] == method and r["likelihood"] == likelihood]
            cells = [r["strategy"] or "–" for r in found]
            lines.append(f"| {method} | {likelihood} | " + " | ".join(cells) + " |")
    sampled = [row for row in table() if row["hyperparameters"] == "sample" and row["strategy"]]
    names = ", ".join(dict.fromkeys(row["method"] for row in sampled))
    text = HEAD + "\n".join(lines) + "\n\n"
    text += f'`hyperparameters="sample"` goes with two classes and all rows in memory, for {names}.\n\n'
    text += "## What is not possible, and why\n\n"
    for rule in RULES:
        when = "; ".join(f"{name}: {', '.join(values)}" for name, values in rule.when.items())
        text += f"- {rule.why}. ({when})\n"
    return text


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(PAGE.read_text(encoding="utf-8") != page())
    PAGE.write_text(page(), encoding="utf-8")
