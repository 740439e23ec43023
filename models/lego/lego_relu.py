"""The smoothed ReLU of Huang et al. 2025 (section 3.2; its leaky form, assumption B.2)."""

import torch
from torch import Tensor


def smoothed_relu(x: Tensor, power: int = 4, knee: float = 0.5, leak: float = 0.0, floor: float = 1.0) -> Tensor:
    """0 for x ≤ 0, x^q / (q ρ^(q-1)) up to ρ, then x - ρ (1 - 1/q): q = power, an even number, and ρ = knee.

    With leak = ϖ > 0: -x²/2 down to -ϖ, then ϖ x + ϖ²/2 down to -floor, and constant below. Continuous with its derivative, except
    at -floor. The paper's first pieces are illegible in the copy at hand; this is the reading that is smooth.
    """
    inside = x.clamp(0, knee) / knee
    raised = inside
    for _ in range(power - 1):  # products, not a power function: its bits depend on how many numbers a processor takes at once
        raised = raised * inside
    # beyond the knee `raised` is 1 and has no gradient, and below 0 neither part has one
    out = raised * (knee / power) + torch.relu(x - knee)
    if leak:
        near = x.clamp(-leak, 0)
        out = out - near * near / 2 + leak * (x.clamp(-floor, -leak) + leak)
    return out
