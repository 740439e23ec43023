"""Attention variation in Li's thesis (CMU-ML-25-120): section 2.2.3.2 on the fixed string, table 2.6 on random ones."""

from collections.abc import Mapping

from results.plain_values import Options

ByLayer = dict[int, tuple[float, float]]  # mean and standard deviation by layer, counted from 1

# one fixed string of two types and depth 4, of models of whole strings of at most 28 tokens, and of prefixes of 28; 40 seeds, and 30 of
# the last; by what the attention rests on
FIXED: Mapping[tuple[str, bool], ByLayer] = {
    ("linear", True): {2: (2.20, 0.0)},
    ("none", True): {2: (2.27, 0.0)},
    ("minimal", True): {1: (0.24, 0.0)},
    ("linear", False): {2: (11.92, 0.0)},
    ("none", False): {2: (14.51, 0.0)},
    ("minimal", False): {1: (0.34, 0.0)},
}
FIXED_RANDOM = 2.85
# 40 random strings of 19 tokens; by types, depth and layers
RANDOM: Mapping[tuple[int, int, int], ByLayer] = {
    (2, 4, 2): {1: (0.047, 0.006), 2: (7.721, 0.908)},
    (2, 4, 3): {1: (0.070, 0.013), 2: (5.072, 0.645), 3: (24.063, 1.166)},
    (2, 8, 2): {1: (0.087, 0.012), 2: (7.583, 0.961)},
    (2, 8, 3): {1: (0.059, 0.011), 2: (5.560, 0.714), 3: (23.590, 0.829)},
    (3, 4, 2): {1: (0.182, 0.024), 2: (9.313, 0.815)},
    (3, 4, 3): {1: (0.225, 0.032), 2: (8.426, 0.877), 3: (25.749, 0.897)},
    (3, 8, 2): {1: (0.178, 0.028), 2: (7.000, 0.884)},
    (3, 8, 3): {1: (0.154, 0.036), 2: (6.280, 0.711), 3: (25.451, 0.871)},
}
RANDOM_RANDOM = 3.33


def on_fixed_string(settings: Options) -> ByLayer | None:
    """The thesis' variation of models with these settings on its fixed string; None where it has none."""
    if [settings.get(f"task.{name}") for name in ("types", "depth")] != [2, 4]:
        return None
    complete = bool(settings["task.complete"])
    model = {name: settings.get(f"model.{name}") for name in ("name", "layers", "norm", "encoding", "attention", "positions")}
    if model["name"] == "minimal_first_layer":
        return FIXED["minimal", complete] if (model["encoding"], model["attention"]) == ("pair", "learned") else None
    return FIXED.get((str(model["positions"]), complete)) if (model["layers"], model["norm"]) == (2, "feed_forward") else None


def on_random_strings(settings: Options) -> ByLayer | None:
    """The row of table 2.6 of models with these settings; None where it has none."""
    if settings.get("model.norm") != "branch":
        return None
    return RANDOM.get((settings["task.types"], settings["task.depth"], settings["model.layers"]))
