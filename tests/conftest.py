"""Fixtures for every test."""

from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[2] / "shared"


@pytest.fixture
def shared() -> Path:
    """Folder of the raw public measurements and real ONNX files; a clone alone does not have it."""
    if not SHARED.is_dir():
        pytest.skip("needs ../shared (raw measurements and real ONNX files), which is not here")
    return SHARED
