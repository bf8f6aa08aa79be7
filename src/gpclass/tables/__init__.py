"""Tables with numbers, categories, dates and missing values as matrices of numbers."""

from gpclass.tables.encoder import Coding, Encoder, TakesTables
from gpclass.tables.inputs import coding_of, needs_coding, plain_labels, read_inputs
from gpclass.tables.kinds import ColumnError, TableWarning
from gpclass.tables.records import Column

__all__ = [
    "Coding",
    "Column",
    "ColumnError",
    "Encoder",
    "TableWarning",
    "TakesTables",
    "coding_of",
    "needs_coding",
    "plain_labels",
    "read_inputs",
]
