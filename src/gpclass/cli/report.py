"""A comparison as one HTML file that needs nothing else: table, figure, and what the columns mean."""

from __future__ import annotations

import base64
import html
from datetime import UTC, datetime
from typing import Any

from gpclass import __version__
from gpclass.cli.errors import InputError
from gpclass.cli.figure import png
from gpclass.comparison import Comparison

MEANINGS = {
    "log evidence": "log p(y | X): how probable the model finds the training labels, by the method itself",
    "corrected": "the same by importance sampling from the method's posterior (for MCMC from EP's), ± its "
    "standard error; at equal hyperparameters all methods should agree on it",
    "k-hat": "tail index of the importance weights: below 0.7 the correction can be trusted",
    "log loss": "mean of −log p(true class) of rows that were not fitted, ± a standard error; less is better",
    "error": "share of those rows whose most probable class is wrong",
    "Brier": "mean squared distance of the probabilities from the truth",
    "ECE": "expected calibration error: how far frequencies are from the probabilities that foretold them",
    "fit s": "seconds to fit all training rows, learning of the hyperparameters included",
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
th:first-child, td:first-child, .words td, .words th { text-align: left; }
.words td { white-space: normal; vertical-align: top; }
img { max-width: 100%; height: auto; } footer { color: #777; margin-top: 2rem; font-size: .85rem; }
"""


def write_report(path: str, result: Comparison, title: str, figure: Any) -> None:
    """Write the report."""
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(page(result, title, png(figure)))
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}.") from error


def page(result: Comparison, title: str, image: bytes) -> str:
    """Return the report as text."""
    name = html.escape(title)
    words = [(row.label, row.kernel_text or "–", row.note) for row in result.rows]
    date = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    encoded = base64.b64encode(image).decode("ascii")
    return "\n".join(
        [
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{name}</title>\n<style>{STYLE}</style>\n</head>\n<body>",
            f"<h1>{name}: Gaussian-process classifiers compared</h1>",
            f'<div class="wide">{_table(result)}</div>',
            "<p>The best of each column is bold. A dash is a number that does not exist.</p>",
            f'<p><img alt="Log losses, evidences, calibration" src="data:image/png;base64,{encoded}"></p>',
            "<h2>Kernels and notes</h2>",
            _words(("method", "kernel with its hyperparameters", "note"), words),
            "<h2>What the columns mean</h2>",
            _words(("column", "meaning"), list(MEANINGS.items())),
            f"<footer>gpclass {html.escape(__version__)}, {date}</footer>\n</body>\n</html>\n",
        ]
    )


def _table(result: Comparison) -> str:
    from gpclass.cli.compare import cells

    headings, rows = cells(result)
    head = "".join(f"<th>{html.escape(heading)}</th>" for heading in headings)
    lines = [
        f"<table>\n<caption>{html.escape(result.title)}</caption>\n<thead><tr>{head}</tr></thead>\n<tbody>"
    ]
    for row in rows:
        inner = (f"<b>{html.escape(text)}</b>" if best else html.escape(text) for text, best in row)
        lines.append("<tr>" + "".join(f"<td>{text}</td>" for text in inner) + "</tr>")
    return "\n".join([*lines, "</tbody>\n</table>"])


def _words(headings: tuple[str, ...], rows: list[Any]) -> str:
    head = "".join(f"<th>{html.escape(heading)}</th>" for heading in headings)
    body = ("<tr>" + "".join(f"<td>{html.escape(text)}</td>" for text in row) + "</tr>" for row in rows)
    return "\n".join(
        [f'<table class="words">\n<thead><tr>{head}</tr></thead>\n<tbody>', *body, "</tbody>\n</table>"]
    )
