"""Why torch.func can't run a user's module for a pack, in one sentence: where, what is wrong, and what to write instead."""

import traceback

from torch.utils import checkpoint

from models.custom.custom_checks import place

_READS = "takes a value out of a tensor", "compute with tensors alone"
_BRANCHES = "branches on a value, of which each replicate has its own", "choose with torch.where, and drop asserts on values"
_SHAPED = "makes a tensor whose shape depends on values", "keep the shape, and choose with torch.where"
_WRITES = (
    "writes what differs between replicates into a tensor that all of them share",
    "make that tensor from one with weights in it (x.new_zeros(…)), or collect the parts with torch.stack or torch.cat",
)
_FUNCTION = (
    "calls a torch.autograd.Function that vmap has no rule for",
    "give it a staticmethod setup_context and the attribute generate_vmap_rule = True",
)
_NOISE = "draws random numbers", "leave them out, or draw them in __init__ and keep them with register_buffer"
_DATA = "uses .data", "write x.detach() for the values without their gradient"
_GRADIENT = "takes a gradient inside forward", "write torch.func.grad instead of torch.autograd or backward"
_OUT = "writes with out=", "leave it out, and use what the function returns"
# words of torch's messages, what then is wrong, and what to write instead
_CAUSES = (
    ("calling .item()", *_READS),
    ("doesn't have storage", *_READS),
    ("Cannot access storage", *_READS),
    ("data-dependent control flow", *_BRANCHES),
    ("aten::equal", *_BRANCHES),
    ("torch.allclose", *_BRANCHES),
    ("dynamic shape", *_SHAPED),
    ("differently shaped", *_SHAPED),
    ("expects each tensor to be equal size", *_SHAPED),
    ("inplace arithmetic", *_WRITES),
    ("doesn't match the broadcast shape", *_WRITES),
    ("more elements than `self`", *_WRITES),
    ("setup_context", *_FUNCTION),
    ("does not have vmap support", *_FUNCTION),
    ("called random operation", *_NOISE),
    ("data` under vmap", *_DATA),
    ("num_classes", "calls one_hot without num_classes", "give it the number of classes"),
    (".out;", *_OUT),
    (".out. ", *_OUT),
    ("Sparse", "uses a sparse tensor", "make it dense"),
    ("not require grad", *_GRADIENT),
    ("requires_grad_()", *_GRADIENT),
)


def unpackable(path: str, error: Exception) -> str:
    """The sentence for an error that torch.vmap raised as it ran the module of MODULE:NAME for a pack."""
    where = place(path, error)
    if any(frame.filename == checkpoint.__file__ for frame in traceback.extract_tb(error.__traceback__)):
        return _sentence(path, where, "calls torch.utils.checkpoint", "leave that out")
    message = str(error)
    for words, wrong, instead in _CAUSES:
        if words in message:
            return _sentence(path, where, wrong, instead)
    first = message.partition(". ")[0].splitlines()[0].removesuffix(".")
    return _sentence(path, where, f"fails there ({first})", "use operations that torch.func supports")


def _sentence(path: str, where: str, wrong: str, instead: str) -> str:
    return f"model.name = {path!r} can't run under torch.func.vmap, as a pack does: {where} {wrong}; {instead}"
