"""fp32, tf32 or bf16: `train.precision` is hashed, since it may change the tail."""

import contextlib

import torch


def autocast(device: torch.device, precision: str):
    """The context in which forward passes of this precision run."""
    if precision == "bf16":
        return torch.autocast(device.type, torch.bfloat16)
    return contextlib.nullcontext()


def set_matmul(precision: str) -> None:
    """Process-wide: tf32 products on CUDA only where the condition asks for them."""
    torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
