from models.model import Model
from models.ngrams.attention_only import AttentionMLP, AttentionOnly, Disentangled
from models.ngrams.disentangled import SimpleDisentangled

MODELS: dict[str, type[Model]] = {
    "simple_disentangled": SimpleDisentangled,
    "disentangled": Disentangled,
    "attn_only": AttentionOnly,
    "attn_mlp": AttentionMLP,
}
