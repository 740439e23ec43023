"""A post-norm encoder as a Hugging Face BERT for masked prediction (Devlin et al. 2019), and back.

BERT's maps are [out, in], ours [in, out]. Its token types are one row of zeros here; of an imported model the row of type 0, which every
position gets by default, is added to the position vectors.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import torch
from torch import Tensor

from harness.exchange import fit
from harness.exchange.folder import read_folder, write_folder
from harness.exchange.weights import single, take
from models.transformer.transformer import Decoder
from results.errors import StudyError
from results.plain_values import Options, Tree

# Hugging Face leaves values of its own defaults out of a config.json
_DEFAULTS: Tree = {
    "vocab_size": 30522,
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
    "max_position_embeddings": 512,
    "layer_norm_eps": 1e-12,
    "tie_word_embeddings": True,
}
_EXPECTED = {"layer_norm_eps": 1e-5, "is_decoder": False, "add_cross_attention": False}
_MAPS = {
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "out": "attention.output.dense",
    "up": "intermediate.dense",
    "down": "output.dense",
}
_NORMS = {"norm1": "attention.output.LayerNorm", "norm2": "output.LayerNorm"}
_HEAD = "cls.predictions"
# of tasks that a masked prediction does not run
_UNUSED = ("bert.pooler.", "cls.seq_relationship.", "bert.embeddings.position_ids")


def to_bert(model: Decoder, folder: str | os.PathLike[str], slot: int = 0, about: Options | None = None) -> Path:
    """Write the replicate in `slot` as a folder that `BertForMaskedLM.from_pretrained` opens; `about` goes into its config.json.

    Raises ValueError naming the option of the model that BERT lacks.
    """
    fit.refuse_unfit(model, "bert")
    ours, config = take(model, slot), model.config
    vocabulary, width = ours["tokens"].shape
    state = {
        "bert.embeddings.word_embeddings.weight": ours["tokens"],
        "bert.embeddings.position_embeddings.weight": fit.position_table(model, slot),
        "bert.embeddings.token_type_embeddings.weight": torch.zeros(1, width),
    }
    _put_norm(state, "bert.embeddings.LayerNorm", ours, "embedding_norm")
    for layer in range(config.layers):
        for own, theirs in _MAPS.items():
            _put_map(state, f"bert.encoder.layer.{layer}.{theirs}", ours, f"blocks.{layer}.{own}")
        for own, theirs in _NORMS.items():
            _put_norm(state, f"bert.encoder.layer.{layer}.{theirs}", ours, f"blocks.{layer}.{own}")
    _put_map(state, f"{_HEAD}.transform.dense", ours, "transform")
    _put_norm(state, f"{_HEAD}.transform.LayerNorm", ours, "transform_norm")
    bias = fit.bias_of(ours, "head", vocabulary)
    state[f"{_HEAD}.bias"] = bias
    if not config.tied:
        state[f"{_HEAD}.decoder.weight"], state[f"{_HEAD}.decoder.bias"] = ours["head.weight"].T, bias
    described = {
        "architectures": ["BertForMaskedLM"],
        "model_type": "bert",
        "dtype": "float32",
        "vocab_size": vocabulary,
        "hidden_size": width,
        "num_hidden_layers": config.layers,
        "num_attention_heads": config.heads,
        "intermediate_size": fit.inner_width(config),
        "hidden_act": config.activation,
        "hidden_dropout_prob": config.residual_dropout,
        "attention_probs_dropout_prob": config.attention_dropout,
        "max_position_embeddings": model.length,
        "type_vocab_size": 1,
        "layer_norm_eps": 1e-5,
        "pad_token_id": None,  # 0 is a token like any other
        "tie_word_embeddings": config.tied,
    }
    return write_folder(folder, described | ({"manyseeds": dict(about)} if about else {}), state)


def from_bert(folder: str | os.PathLike[str]) -> Decoder:
    """The model of a Hugging Face BERT folder, with its head for masked prediction, as a pack with R = 1.

    Raises ValueError naming what ours has no counterpart of, such as `layer_norm_eps` other than 1e-5.
    """
    described, theirs = read_folder(folder)
    if described.get("model_type") != "bert":
        raise StudyError(f"{folder} holds a model of type {described.get('model_type')!r}, which is not bert")
    given = _DEFAULTS | described
    config = fit.imported(
        "BERT",
        given,
        {
            "causal": False,
            "layers": given["num_hidden_layers"],
            "width": given["hidden_size"],
            "heads": given["num_attention_heads"],
            "feed_forward": given["intermediate_size"],
            "activation": given["hidden_act"],
            "norm": "post",
            "bias": True,
            "embedding_norm": True,
            "head": "transform",
            "tied": given["tie_word_embeddings"],
            "initial": "gpt2",
            "embedding_dropout": float(given["hidden_dropout_prob"]),
            "attention_dropout": float(given["attention_probs_dropout_prob"]),
            "residual_dropout": float(given["hidden_dropout_prob"]),
        },
        _EXPECTED,
    )
    theirs = {name: tensor for name, tensor in theirs.items() if not name.startswith(_UNUSED)}
    types = fit.pop(theirs, "bert.embeddings.token_type_embeddings.weight")
    ours = {
        "tokens": fit.pop(theirs, "bert.embeddings.word_embeddings.weight"),
        "positions": fit.pop(theirs, "bert.embeddings.position_embeddings.weight") + types[0],
    }
    _pop_norm(ours, "embedding_norm", theirs, "bert.embeddings.LayerNorm")
    for layer in range(config.layers):
        for own, other in _MAPS.items():
            _pop_map(ours, f"blocks.{layer}.{own}", theirs, f"bert.encoder.layer.{layer}.{other}")
        for own, other in _NORMS.items():
            _pop_norm(ours, f"blocks.{layer}.{own}", theirs, f"bert.encoder.layer.{layer}.{other}")
    _pop_map(ours, "transform", theirs, f"{_HEAD}.transform.dense")
    _pop_norm(ours, "transform_norm", theirs, f"{_HEAD}.transform.LayerNorm")
    ours["head.bias"] = fit.pop(theirs, f"{_HEAD}.bias")
    if config.tied:  # the same tensors again
        theirs.pop(f"{_HEAD}.decoder.weight", None)
        theirs.pop(f"{_HEAD}.decoder.bias", None)
    else:
        ours["head.weight"] = fit.pop(theirs, f"{_HEAD}.decoder.weight").T
        ours["head.bias"] = fit.pop(theirs, f"{_HEAD}.decoder.bias")
    fit.refuse_rest(theirs)
    return cast(Decoder, single(config, given["vocab_size"], given["max_position_embeddings"], ours))


def _put_map(state: dict[str, Tensor], theirs: str, ours: Mapping[str, Tensor], own: str) -> None:
    weight = ours[f"{own}.weight"]
    state[f"{theirs}.weight"], state[f"{theirs}.bias"] = weight.T, fit.bias_of(ours, own, weight.shape[1])


def _put_norm(state: dict[str, Tensor], theirs: str, ours: Mapping[str, Tensor], own: str) -> None:
    state[f"{theirs}.weight"], state[f"{theirs}.bias"] = ours[f"{own}.gain"], ours[f"{own}.bias"]


def _pop_map(ours: dict[str, Tensor], own: str, theirs: dict[str, Tensor], name: str) -> None:
    ours[f"{own}.weight"], ours[f"{own}.bias"] = fit.pop(theirs, f"{name}.weight").T, fit.pop(theirs, f"{name}.bias")


def _pop_norm(ours: dict[str, Tensor], own: str, theirs: dict[str, Tensor], name: str) -> None:
    ours[f"{own}.gain"], ours[f"{own}.bias"] = fit.pop(theirs, f"{name}.weight"), fit.pop(theirs, f"{name}.bias")
