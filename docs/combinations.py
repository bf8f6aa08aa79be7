"""Write the page of combinations from the table that the library dispatches on."""

from __future__ import annotations

import sys
from pathlib import Path

from gpclass.learning.strategies import METHODS, RULES, SEVERAL, Case, refusal

PAGE = Path(__file__).parent / "guide" / "combinations.md"

HEAD = """# What goes with what

Every fit is one combination of a method, a likelihood, where the rows are and what happens to the hyperparameters. This
page is made from the table that the library itself uses to choose a strategy, so it cannot differ from what happens.

- *Likelihood*: "two classes" stands for every likelihood with one latent function (`"probit"`, `"logit"`, `"cloglog"`,
  `"label_noise"`, `"ordinal"` with any number of classes, your own). With three classes or more and
  `multi_class="joint"` the probit is the multinomial probit and the logit is softmax; `"one_vs_rest"` and
  `"one_vs_one"` fit two-class models. With `inference="dirichlet"` both names mean softmax, for two classes as well.
- *Rows*: all rows in memory, inducing inputs (`inducing=...`), or passes over rows that are not in memory (files,
  blocks, Dask collections, `partial_fit`).

"""


def page() -> str:
    """Return the page."""
    lines = ["| method | likelihood | all rows | inducing inputs | passes |", "|---|---|---|---|---|"]
    likelihoods, places = ("two classes", *SEVERAL), ("all", "inducing", "passes")
    for method in METHODS:
        for likelihood in likelihoods:
            cases = [Case(method, likelihood, rows) for rows in places]
            cells = ["–" if refusal(case) else case.strategy for case in cases]
            lines.append(f"| {method} | {likelihood} | " + " | ".join(cells) + " |")
    sampled = (Case(method, "two classes", hyperparameters="sample") for method in METHODS)
    names = ", ".join(case.method for case in sampled if not refusal(case))
    text = HEAD + "\n".join(lines) + "\n\n"
    text += f'`hyperparameters="sample"` goes with two classes and all rows in memory, for {names}.\n\n'
    text += "## What is not possible, and why\n\n"
    for why, options in RULES.items():
        when = "; ".join(f"{name}: {', '.join(values)}" for name, values in options.items())
        text += f"- {why}. ({when})\n"
    return text


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(PAGE.read_text(encoding="utf-8") != page())
    PAGE.write_text(page(), encoding="utf-8")
