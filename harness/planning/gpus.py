"""Kinds of GPU that `manyseeds plan --on` estimates for, and how fast each is."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Gpu:
    """products: FLOP/s of matrix products by precision; attention: FLOP/s of fused attention in bf16; bandwidth: byte/s; memory: bytes.

    score_s: seconds for the exponential and softmax of one score, forward and backward together.
    """

    name: str
    products: Mapping[str, float]
    attention: float
    score_s: float
    bandwidth: float
    memory: int


# bf16 and the bandwidth as measured on such machines, the others by the datasheet
H200 = Gpu("NVIDIA H200", {"bf16": 790e12, "tf32": 395e12, "fp32": 67e12}, 300e12, 1.45e-12, 4.3e12, 139 * 2**30)
_BF16, _BANDWIDTH = 989e12, 4.8e12  # of the H200's datasheet, as the numbers below are of the others'
_EXPONENTIALS = 132 * 1.83e9  # multiprocessors times clock: each starts the same number in a cycle on all kinds below


def _like_h200(name: str, bf16: float, tf32: float, fp32: float, bandwidth: float, memory_gib: int, cycles: float) -> Gpu:
    """A GPU that reaches as much of its datasheet's numbers (TFLOP/s without sparsity, TB/s) as an H200 reaches of its own.

    cycles: multiprocessors times boost clock, 1/s.
    """
    reached, products = H200.products["bf16"] / _BF16, {"bf16": bf16 * 1e12, "tf32": tf32 * 1e12}
    return Gpu(
        name,
        {precision: reached * peak for precision, peak in products.items()} | {"fp32": fp32 * 1e12},
        H200.attention * bf16 * 1e12 / _BF16,
        H200.score_s * _EXPONENTIALS / cycles,
        H200.bandwidth * bandwidth * 1e12 / _BANDWIDTH,
        memory_gib * 2**30,
    )


GPUS = {
    "h200": H200,
    "h100": _like_h200("NVIDIA H100 SXM", 989, 494, 67, 3.35, 79, 132 * 1.83e9),
    "a100": _like_h200("NVIDIA A100 80GB SXM", 312, 156, 19.5, 2.04, 79, 108 * 1.41e9),
    "l40s": _like_h200("NVIDIA L40S", 362, 183, 91.6, 0.864, 44, 142 * 2.52e9),
    "rtx4090": _like_h200("NVIDIA GeForce RTX 4090", 165, 82.6, 82.6, 1.008, 23, 128 * 2.52e9),
}
