"""Fitted classifiers as ONNX graphs, for programs in which there is no Python."""

from __future__ import annotations

from gpclass.onnx.export import to_onnx
from gpclass.onnx.kernels import OnnxExportError

__all__ = ["OnnxExportError", "to_onnx"]
