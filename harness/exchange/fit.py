"""Whether a transformer of ours fits a model of Hugging Face, and the parts that GPT-2 and BERT share."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from harness.study.config import name_of
from models.model import config_of
from models.transformer.transformer import Decoder, Transformer
from results.errors import StudyError
from results.plain_values import Options, Value

# what a table of position vectors can say, with and without training
TABLES = ("learned", "sinusoidal", "linear", "none")
ACTIVATIONS = ("gelu", "relu")  # both spell them so; "gelu" is the exact one in both

GPT2: dict[str, tuple[Any, ...]] = {
    "causal": (True,),
    "positions": TABLES,
    "activation": ACTIVATIONS,
    "norm": ("pre",),
    "final_norm": (True,),
    "residual": (True,),
    "join": ("concatenate",),
    "embedding_norm": (False,),
    "head": ("linear",),
}
BERT: dict[str, tuple[Any, ...]] = {
    "causal": (False,),
    "positions": TABLES,
    "activation": ACTIVATIONS,
    "norm": ("post",),
    "residual": (True,),
    "join": ("concatenate",),
    "embedding_norm": (True,),
    "head": ("transform",),
}
_TITLES = {"gpt2": "a Hugging Face GPT-2", "bert": "a Hugging Face BERT"}
_RULES = {"gpt2": GPT2, "bert": BERT}


def refuse_unfit(model: nn.Module, form: str) -> None:
    """ValueError naming the first option that `form` (gpt2 | bert) has no counterpart of, and the format that fits."""
    wrong = unfit(model, form)
    if wrong is not None:
        other = "bert" if form == "gpt2" else "gpt2"
        formats = ["safetensors", *([other] if unfit(model, other) is None else [])]
        raise StudyError(f"{wrong}: use the format {' or '.join(reversed(formats))}")


def unfit(model: nn.Module, form: str) -> str | None:
    """What keeps a model from being a `form`, as half a sentence; None where nothing does."""
    title, config = _TITLES[form], config_of(model)
    if not isinstance(model, Decoder) or not isinstance(config, Transformer):
        kind = "of another library" if config is None else name_of(config)
        return f"the model is {kind}, and {title} is a transformer"
    for option, allowed_values in _RULES[form].items():
        if getattr(config, option) not in allowed_values:
            allowed = " or ".join(_word(value) for value in allowed_values)
            return f"model.{option} = {_word(getattr(config, option))} is not in {title}, which has {allowed}"
    if config.head_dim is not None and config.head_dim * config.heads != config.width:
        product = f"model.heads · model.head_dim = {config.heads} · {config.head_dim}"
        return f"{product} is not model.width = {config.width}, as it is in {title}"
    if config.feed_forward == 0:
        return f"model.feed_forward = 0 is not in {title}, which always has a feed-forward"
    classes, vocabulary = model.head_weight().shape[-1], model.tokens.shape[1]
    if classes != vocabulary:
        return f"the model has {classes} output classes for {vocabulary} tokens, and {title} has one class per token"
    return None


def imported(kind: str, described: Options, options: Options, expected: Options) -> Transformer:
    """Our configuration of an imported model. ValueError where its config.json has another value than `expected` of a key."""
    for name, value in expected.items():
        if described.get(name, value) != value:
            raise StudyError(
                f"config.json has {name} = {described[name]!r} and our transformer has {value!r}: it can't be imported"
            )
    if options["activation"] not in ACTIVATIONS:
        raise StudyError(
            f"config.json has the activation {options['activation']!r} and a {kind} can be imported with {' or '.join(ACTIVATIONS)}"
        )
    return Transformer(**options)


def position_table(model: Decoder, slot: int) -> Tensor:
    """What a replicate's model adds to the vectors of its tokens, [T, D] for its longest strings: scaled, without shift, zeros for none."""
    vectors = model.position_vectors(model.length)
    if vectors is None:
        return torch.zeros(model.length, model.config.width)
    return vectors[slot if len(vectors) > 1 else 0].detach().cpu()


def inner_width(config: Transformer) -> int:
    """The inner width of its feed-forward."""
    return 4 * config.width if config.feed_forward is None else config.feed_forward


def pop(tensors: dict[str, Tensor], name: str) -> Tensor:
    """Take a tensor out of a folder's. ValueError where it is missing."""
    if name not in tensors:
        raise StudyError(f"model.safetensors lacks {name}")
    return tensors.pop(name).float()


def refuse_rest(tensors: Mapping[str, Tensor]) -> None:
    """ValueError for a tensor that has no counterpart in ours."""
    if tensors:
        raise StudyError(f"model.safetensors holds {min(tensors)}, which our transformer has no counterpart of")


def bias_of(tensors: Mapping[str, Tensor], name: str, size: int) -> Tensor:
    """The bias of one of our linear maps, zeros where it has none."""
    return tensors.get(f"{name}.bias", torch.zeros(size))


def _word(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
