"""A comparison as one HTML file: findings, table, figure, and what the columns mean."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from html import escape
from typing import Any

from gpclass import __version__
from gpclass.cli.errors import access
from gpclass.cli.figures import image_of
from gpclass.core import files

MEANINGS = {
    "log evidence": "log p(y | X), how probable the training labels are, according to the method",
    "corrected": "the same by importance sampling from the method's posterior (for MCMC from EP's), ± its "
    "standard error; at equal hyperparameters all methods should agree on it",
    "k-hat": "tail index of the importance weights: the correction can be trusted below 0.7, or less with few draws",
    "log loss": "mean of −log p(true class) of rows that were not fitted, ± a standard error; less is better",
    "error": "fraction of those rows whose most probable class is wrong",
    "Brier": "mean squared distance between the probabilities and the true labels",
    "ECE": "expected calibration error: how far observed frequencies are from the predicted probabilities",
    "fit s": "seconds to fit all training rows, including learning of the hyperparameters",
    "predict s": "seconds to predict all rows that are scored",
}
STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #222; }
body { max-width: 76rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
caption { text-align: left; color: #555; padding-bottom: .5rem; }
th, td { padding: .3rem .7rem; border-bottom: 1px solid #ddd; text-align: right; white-space: nowrap; }
th:first-child, td:first-child, dd { text-align: left; } dt { font-weight: bold; }
img { max-width: 100%; height: auto; } footer { color: #777; margin-top: 2rem; font-size: .85rem; }
"""
PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<h1>{title}</h1>
<div class="wide">
{table}
</div>
<p>A dash stands for a value that does not exist.</p>
<p><img alt="Log losses, evidences, calibration" src="data:image/png;base64,{image}"></p>
<h2>What the columns mean</h2>
<dl>
{meanings}
</dl>
<footer>gpclass {version}, {date}</footer>
</body>
</html>
"""


def write_report(path: str, result: Any, title: str, figure: Any) -> None:
    """Write the report, which needs no other file."""
    meanings = (f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in MEANINGS.items())
    text = PAGE.format(
        title=escape(title),
        style=STYLE,
        table=result._repr_html_(),  # what notebooks show
        image=base64.b64encode(image_of(figure, "png", dpi=130)).decode("ascii"),
        meanings="\n".join(meanings),
        version=__version__,
        date=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    )
    with access(path, "written"), files.replacing(path) as file:
        file.write(text.encode("utf-8"))
