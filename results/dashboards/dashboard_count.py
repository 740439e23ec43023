"""The limit on the W&B runs of a study, checked before anything starts."""

from results.errors import StudyError

RUNS = ("study", "condition", "replicate")  # the unit that has a run of its own; the study always has one
MOST_RUNS = 1000  # most that W&B shows in a workspace


def check_count(per: str, conditions: int, replicates: int) -> None:
    """Raise ValueError where so many runs are more than W&B can show."""
    count = {"study": 0, "condition": conditions, "replicate": replicates}[per]
    if count > MOST_RUNS:
        fewer = "study" if per == "condition" else "condition or study"
        raise StudyError(
            f"wandb.runs = {per} would make {count:,} W&B runs of this study and W&B shows {MOST_RUNS:,}: write {fewer}, or select fewer"
        )
