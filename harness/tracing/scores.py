"""What the methods share that score events or tokens: ridge regression, and captum with seeds of its own."""

from typing import Any

import torch
from torch import Tensor

from results.errors import StudyError

TRIES = 16  # strings that an event is left out of
SAMPLES = 50  # of Gradient-SHAP


def ridge(same: Tensor, hit: Tensor, penalty: float = 1.0) -> Tensor:
    """Coefficients float64 [P] of the ridge regression of hit [N] on same bool [N, P], with an intercept."""
    x, y = same.double(), hit
    x, y = x - x.mean(0), y - y.mean()
    return torch.linalg.solve(x.T @ x + penalty * torch.eye(x.shape[1], dtype=torch.float64), x.T @ y)


def captum() -> Any:
    """The library's attribution methods. ValueError in one sentence where it is not installed."""
    try:
        from captum import attr
    except ImportError as error:
        raise StudyError("attribution by gradients needs the package captum: pip install 'manyseeds[tracing]'") from error
    return attr
