"""Fitted classifiers as files: numbers and names in the safetensors format, and no code.

`save` writes one file, at once or not at all. `load` builds a classifier out of classes that it knows, after
every size, name and number in the file was found to be possible.
"""

from __future__ import annotations

from gpclass.persistence.container import ModelFileError
from gpclass.persistence.files import load, save

__all__ = ["ModelFileError", "load", "save"]
