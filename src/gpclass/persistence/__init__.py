"""Model files: fitted classifiers as numbers and names in the safetensors format, without pickle or code.

`save` writes one file, completely or not at all. `load` checks every size, name and number in a file, and then builds
a classifier from registered classes.
"""

from __future__ import annotations

from gpclass.persistence.codec import ModelFileError
from gpclass.persistence.files import load, load_with_extra, save

__all__ = ["ModelFileError", "load", "load_with_extra", "save"]
