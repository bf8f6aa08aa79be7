"""Fitted classifiers as ONNX graphs, for programs without Python."""

from __future__ import annotations

from gpclass.onnx.export import to_onnx
from gpclass.onnx.graph import OnnxExportError

__all__ = ["OnnxExportError", "to_onnx"]
