"""Fixtures of tests of models."""

import pytest
import torch


@pytest.fixture
def float64():
    """What a test makes with torch is float64: models and their peers then agree to the bound of `tests.rounding`."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)
