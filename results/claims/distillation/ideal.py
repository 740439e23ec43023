"""Accuracies of an ideal observer of masked strings, beside which those of models are printed (`benchmarks/theory/pcfg_ideal.py`)."""

from results.plain_values import Options

IDEAL = {("cfg3b", 13, 19): 0.961, ("cfg3b", 14, 28): 0.962}  # by grammar, root and length, at the default rate of masks


def ideal(settings: Options) -> float | None:
    """Accuracy of an ideal observer for a task's options; None where it has not been computed."""
    usual = (
        settings.get("task.objective") == "masked" and settings.get("task.mask_rate") == 0.3 and settings.get("task.mask_start")
    )
    return IDEAL.get((settings["task.grammar"], settings["task.root"], settings["task.length"])) if usual else None


def beside(settings: Options) -> str:
    """Words to print after accuracies on a task: the ideal observer's; "" where it is not known."""
    best = ideal(settings)
    return "" if best is None else f"; an ideal observer has an accuracy of {best:.3f}"
