"""Tables with numbers, categories, dates and missing values as matrices of numbers."""

from gpclass.tables.encoder import Encoder
from gpclass.tables.inputs import needs_coding, plain_labels, read_inputs
from gpclass.tables.kinds import ColumnError, TableWarning
from gpclass.tables.reading import TakesTables
from gpclass.tables.records import Column

__all__ = [
    "Column",
    "ColumnError",
    "Encoder",
    "TableWarning",
    "TakesTables",
    "needs_coding",
    "plain_labels",
    "read_inputs",
]
