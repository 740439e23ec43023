"""Strategies and horizons of students on grammars, and their teachers, by the options of a condition."""

from results.plain_values import Options, Tree

LABELS, ONE_SHOT, PROGRESSIVE, TWO = "labels", "one-shot", "progressive", "(2, T)"


def strategy(settings: Options) -> str | None:
    """The strategy of a condition with these options by dotted path: LABELS (a first stage), ONE_SHOT, PROGRESSIVE (several equally
    spaced checkpoints), TWO (one checkpoint, then the last), None for anything else."""
    if "stage.number" not in settings:
        return LABELS
    if settings["stage.labels"] != "teacher":
        return None
    checkpoints = settings["stage.teacher.checkpoints"]
    if not checkpoints:
        return ONE_SHOT if settings["stage.teacher.shots"] == 1 else PROGRESSIVE
    if len(checkpoints) == 1 and checkpoints[0]["at"] == "last":
        return ONE_SHOT
    return TWO if len(checkpoints) == 2 and checkpoints[1]["at"] == "last" else None


def first_checkpoint(settings: Options) -> int | None:
    """The teacher's step that a (2, T) student begins with; None where a rule says it."""
    at = settings["stage.teacher.checkpoints"][0]["at"]
    return at if isinstance(at, int) else None


def teacher_config(config: Options) -> Tree | None:
    """The hashed configuration of a student's teacher, from that of the student; None for a first stage, or a longer chain."""
    stages = config.get("stages", [])
    if len(stages) != 2:
        return None
    before = stages[0]
    return {"task": before["task"], "model": before.get("model", config["model"]), "train": before["train"]}
