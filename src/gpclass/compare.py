"""Methods side by side on one problem: evidence, predictions out of sample, calibration and time."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold, check_cv
from sklearn.utils import _safe_indexing as rows_of
from sklearn.utils import check_random_state

from gpclass.comparison import Comparison, ComparisonRow
