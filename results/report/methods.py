"""A methods paragraph for a paper, made from a study's manifest and its committed rows: no value in it comes from anywhere else.

Options that every replicate of a study shares are named once, those that differ with their values. An option is named where a condition
sets it, or where readers expect it (ASKED, and `task_options` of the families). An option without words here is listed as `name = value`,
so a user's own task or model is described as well. The text is plain: a page must escape it.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from results.claims import reductions
from results.grouping import grouped
from results.plain_values import Options, Tree, Value
from results.progress.adaptive_status import lines
from results.report.family import ReportFamily, error_phrases, scored_answers
from results.report.family_sections import FAMILIES
from results.rows.options import flatten, split
from results.rows.plural import counted, ranges
from results.rows.shared_seeds import caution
from results.rows.summary import ENDINGS, Replicate, reported_sets
from results.statistics.intervals import CONFIDENCE
from results.store.json_columns import entries
from results.store.manifest import ConditionFields, Manifest, label, stage_of

MOST = 8  # most conditions, values or endings that are listed; of more, only their number is given
ASKED: dict[str, tuple[str, ...]] = {
    "task": ("name", "length"),
    "model": ("name", "layers", "width", "heads", "positions", "activation", "norm"),
    "train": ("steps", "batch", "optimizer", "lr", "betas", "weight_decay", "warmup", "schedule", "precision", "pool"),
}
WORDS: dict[str, str] = {
    "task.length": "length {} tokens",
    "train.steps": "{} steps",
    "train.batch": "a batch of {} strings",
    "train.optimizer": "optimiser {}",
    "train.lr": "learning rate {}",
    "train.betas": "betas {}",
    "train.weight_decay": "weight decay {}",
    "train.warmup": "{} steps of linear warm-up",
    "train.schedule": "learning-rate schedule {}",
    "train.precision": "precision {}",
    "train.decay_steps": "a decay that would end after {} steps",
}
NONE = {"train.weight_decay": "no weight decay", "train.warmup": "no warm-up"}
SCHEDULES = {"linear": "linear decay to 0"}
NAMES = {"train.optimizer": {"adamw": "AdamW", "adam": "Adam", "sgd": "SGD"}, "train.schedule": SCHEDULES}


def methods_text(
    manifest: Manifest,
    planned: Sequence[Replicate],
    replicates: pa.Table,
    summary: pa.Table,
    families: Sequence[ReportFamily] = FAMILIES,
) -> str:
    """The paragraph, as one line of plain text.

    planned: from `results.rows.summary.replicates_of`; replicates: the committed rows; summary: from
    `results.rows.summary.summarise`.
    """
    keys = pa.array([replicate.key for replicate in planned], pa.string())
    rows = replicates.filter(pc.is_in(replicates["key"], keys))
    asked = ASKED | {"task": (*ASKED["task"], *(option for family in families for option in family.task_options))}
    configs = [_options(condition, asked) for condition in manifest["conditions"]]
    sentences = [
        _study(manifest, planned),
        _part("task", manifest, configs, rows, _phrases(manifest, families)),
        *(_part(part, manifest, configs, rows) for part in ("model", "train")),
        _stages(manifest),
        "An option that is not named has its default.",
        _sets(manifest, summary, families, any(config.get("train.ema") for config in configs)),
        _seeds(manifest, planned),
        adaptive_rule(manifest, planned),
        _statistics(manifest, planned, families),
        reduced(manifest),
        made(manifest, rows),
    ]
    return one_line(" ".join(sentences))


def _study(manifest: Manifest, planned: Sequence[Replicate]) -> str:
    conditions = len({entry["name"] for entry in manifest["conditions"]})
    stages = len({replicate.stage for replicate in planned})
    replicates = len({replicate.key for replicate in planned})
    if stages > 1:
        what, each = f"{counted(replicates, 'training')} in {stages} stages,", "a chain of such trainings"
    else:
        what, each = counted(replicates, "replicate"), "one training"
    return (
        f"The study “{manifest['study']}” has {what} of {counted(conditions, 'condition')}; "
        f"a replicate is {each}, with an initialisation seed and a data seed."
    )


def _options(condition: ConditionFields, options: Mapping[str, tuple[str, ...]]) -> Tree:
    """The options of one condition that the paragraph names, by dotted path; with defaults where the manifest has them."""
    config, settings = condition.get("config", {}), condition.get("settings", {})
    named: Tree = {}
    for part in ("task", "model", "train"):
        stated, complete = flatten(_mapping(config.get(part)), f"{part}."), flatten(_mapping(settings.get(part)), f"{part}.")
        own = part == "task" and ":" in str(complete.get("task.name"))  # a class of one's own, whose defaults no reader knows
        asked = (
            complete if own else {name: complete[name] for option in options[part] if (name := f"{part}.{option}") in complete}
        )
        for empty in [name for name, value in stated.items() if value == {}]:  # switched on, with nothing but defaults
            if defaults := {name: value for name, value in complete.items() if name.startswith(f"{empty}.")}:
                del stated[empty]
                stated |= defaults
        named |= {name: value for name, value in {**asked, **stated}.items() if value is not None}
    if named.get("train.optimizer") == "sgd":
        named.pop("train.betas", None)  # a default that it does not read
    return named


def _part(part: str, manifest: Manifest, configs: Sequence[Options], rows: pa.Table, phrases: Sequence[str] = ()) -> str:
    """One sentence on the task, the model or the training: what all conditions share, `phrases` included, then what differs."""
    own = [{name: value for name, value in config.items() if name.startswith(f"{part}.")} for config in configs]
    shared, varied = split(own)
    if not shared and not varied:
        return ""
    said = [_words(name, value) for name, value in shared.items()]
    if part == "train" and "train.pool" in shared and not shared["train.pool"]:
        said[list(shared).index("train.pool")] = "fresh strings at every step"
    said += phrases
    text = f"{'Training' if part == 'train' else part.capitalize()}: {', '.join(said) or 'no option is the same in all conditions'}"
    if varied and len(own) <= MOST:
        keys = grouped((row[1], row[0]) for row in manifest["replicates"])
        described = grouped(
            (
                f"{', '.join(_words(name, config[name]) for name in varied if name in config) or 'none of these set'}"
                f"{_parameters(rows, keys.get(place, [])) if part == 'model' else ''}",
                label(condition["name"], stage_of(condition)),
            )
            for place, (condition, config) in enumerate(zip(manifest["conditions"], own, strict=True))
        )
        text += "; differing between conditions: " + "; ".join(
            f"{listed(names)} ({words})" for words, names in described.items()
        )
    elif varied:
        noun = "trainings" if any(map(stage_of, manifest["conditions"])) else "conditions"
        text += f"; differing between the {len(own)} {noun}: " + "; ".join(_values(name, own) for name in varied)
    if part == "model" and (not varied or len(own) > MOST):
        text += _parameters(rows)
    return text + "."


def _phrases(manifest: Manifest, families: Sequence[ReportFamily]) -> list[str]:
    """Phrases that families add about the task, where it is the same for every condition."""
    tasks = [_mapping(condition.get("settings", {}).get("task")) for condition in manifest["conditions"]]
    said = [{family.task_phrase(task) for task in tasks} for family in families if family.task_phrase is not None]
    return [phrase for phrases in said if len(phrases) == 1 for phrase in phrases if phrase is not None]


def _values(name: str, configs: Sequence[Options]) -> str:
    values = list(dict.fromkeys(value_text(name, config[name]) for config in configs if name in config))
    some = f"{len(values)} values" if len(values) > MOST else " | ".join(values)
    return f"{name.partition('.')[2]} ({some}{'' if all(name in config for config in configs) else ', or not set'})"


def _words(name: str, value: Value) -> str:
    short = name.partition(".")[2]
    if short == "name":
        return value_text(name, value)
    if name in NONE and value == 0:
        return NONE[name]
    if name == "train.batch" and value == 1:
        return "one string per step"
    return WORDS[name].format(value_text(name, value)) if name in WORDS else f"{short} = {value_text(name, value)}"


def value_text(name: str, value: Value) -> str:
    """The value of an option as a sentence has it."""
    if name in NAMES and isinstance(value, str):
        return NAMES[name].get(value, value)
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _parameters(rows: pa.Table, keys: Sequence[str] | None = None) -> str:
    """The models' sizes, of all rows or of those with these keys: a condition may have been called otherwise when it was trained."""
    chosen = rows if keys is None else rows.filter(pc.is_in(rows["key"], pa.array(keys, pa.string())))
    sizes = sorted(set(chosen["parameters"].to_pylist()))
    if not sizes:
        return ""
    return f", {sizes[0]:,} parameters" if len(sizes) == 1 else f", {sizes[0]:,} to {sizes[-1]:,} parameters"


def _stages(manifest: Manifest) -> str:
    chains = {}
    for condition in manifest["conditions"]:
        config = condition.get("config", {})
        if stages := config.get("stages"):  # of the last stage they hold only what it takes from the one before
            own = {name: config[name] for name in ("task", "model", "train") if name in config}
            chains[condition["name"]] = [*stages[:-1], own | stages[-1]]
    if not chains:
        return ""
    told = {
        name: [f"stage {number} ({_stage(stage, stages[number - 1] if number else {})})" for number, stage in enumerate(stages)]
        for name, stages in chains.items()
    }
    firsts = grouped((stages[0], name) for name, stages in told.items() if len(stages) > 1)
    shared = {first: names for first, names in firsts.items() if len(names) > 1}
    texts = []
    for first, names in shared.items():
        number, words = first.split(" (", 1)
        who = "every chain" if len(names) == len(told) else listed(names) if len(names) <= MOST else f"{len(names)} conditions"
        texts.append(f"{number} of {who} ({words}")
    own = {name: ", ".join(stages[1:] if stages[0] in shared else stages) for name, stages in told.items()}
    texts.append(same_together(own, len(manifest["conditions"])))
    return (
        f"Stages in their order, the first training included, and of a later one what it does not share with the one before: "
        f"{'; '.join(texts)}."
    )


def _stage(stage: Options, before: Options) -> str:
    """What a stage says of its task, model and training, and of what it takes from the stage before.

    Options that are as in the stage before are left out; not those of a part that lacks an option of the one before, whose value there
    would seem to hold.
    """
    said = []
    for part in (name for name in ("task", "model", "train") if name in stage):
        own, known = (flatten({part: each[part]} if part in each else {}) for each in (stage, before))
        same = {name for name, value in own.items() if name in known and known[name] == value}
        if not known.keys() <= own.keys() or (f"{part}.name" in own and own[f"{part}.name"] != known.get(f"{part}.name")):
            same = set()
        said += [_words(name, value) for name, value in own.items() if name not in same]
    others = flatten({name: value for name, value in stage.items() if name not in ("task", "model", "train")})
    return ", ".join([*said, *(f"{name} = {value_text(name, value)}" for name, value in others.items())])


def _sets(manifest: Manifest, summary: pa.Table, families: Sequence[ReportFamily], averaged: bool) -> str:
    """Each set with its law, its size, and when it is scored. averaged: whether an average of the weights is scored as well."""
    answers = scored_answers(manifest["conditions"], families)
    wrong = "; or ".join(error_phrases(manifest["conditions"], families))
    reads = grouped(
        (row["set"], row["reads"]) for row in summary.select(["set", "reads"]).to_pylist() if row["reads"] is not None
    )
    texts = []
    for name, value in manifest["sets"].items():
        law = ", ".join(f"{option} = {value_text(option, setting)}" for option, setting in flatten(value["definition"]).items())
        size = f"{value['sequences']:,} sequences"
        if name in reads:
            least, most = min(reads[name]), max(reads[name])
            size += f", {least:,} {answers}" if least == most else f", {least:,} to {most:,} {answers} by condition"
        when = f", scored every {value['every']:,} steps and at the end" if value.get("every") is not None else ""
        seed = f", seed {value['seed']}" if value.get("seed") is not None else ""
        texts.append(f"{name} ({law or 'the law of the training'}; {size}{seed}{when})")
    if not texts:
        return ""
    weights = ", with the weights themselves and not their average" if averaged else ""
    return (
        f"Evaluation sets, fixed strings of the task with these options changed: {'; '.join(texts)}. No training reads them. An error rate "
        f"is the number of errors divided by the number of {answers} over a whole set, at the last step of a training{weights}. "
        f"An error is {wrong}."
    )


def _seeds(manifest: Manifest, planned: Sequence[Replicate]) -> str:
    """Seeds and endings by condition; conditions that are alike are named together."""
    seeds: dict[str, list[tuple[int, int]]] = {condition["name"]: [] for condition in manifest["conditions"]}
    endings: dict[str, dict[str, int]] = {condition["name"]: dict.fromkeys(ENDINGS, 0) for condition in manifest["conditions"]}
    last: dict[str, int] = {}  # conditions may share their first stage, which then belongs to one of them alone
    for replicate in planned:
        last[replicate.condition] = max(replicate.stage, last.get(replicate.condition, 0))
    for replicate in planned:
        endings[replicate.condition][replicate.status] += 1
        if replicate.stage == last[replicate.condition]:
            seeds[replicate.condition].append(replicate.seeds)
    staged = len({replicate.stage for replicate in planned}) > 1
    texts = {}
    for name, pairs in seeds.items():
        paired = ", paired" if pairs and all(init == data for init, data in pairs) else ""
        counts = ", ".join(f"{count:,} {ending.replace('_', ' ')}" for ending, count in endings[name].items() if count)
        texts[name] = (
            f"{counted(len(pairs), 'replicate')} (initialisation seeds {ranges(init for init, _ in pairs) or 'none'}, data seeds "
            f"{ranges(data for _, data in pairs) or 'none'}{paired}; {'over all stages ' if staged else ''}{counts or 'none ended'})"
        )
    return f"Planned replicates and how they ended: {same_together(texts, len(texts))}."


def adaptive_rule(manifest: Manifest, planned: Sequence[Replicate]) -> str:
    """The sentence on when a study stops adding replicates; empty where their number is fixed."""
    sentences = lines(manifest, planned)
    return f"{sentences[0]} The interval at a stop is not one of a fixed number of replicates." if sentences else ""


def _statistics(manifest: Manifest, planned: Sequence[Replicate], families: Sequence[ReportFamily]) -> str:
    answers = scored_answers(manifest["conditions"], families)
    level = f"{CONFIDENCE:.0%}".replace("%", " %")
    reported = reported_sets(manifest)
    parts = [
        "Quantiles run over replicates; diverged replicates rank worst and never count as without error",
        f"the median has a distribution-free interval from order statistics and the share of replicates without error the exact one "
        f"of Clopper and Pearson, both of at least {level}",
        "an error rate of one replicate has an interval clustered by sequence (Clopper–Pearson at the effective number of "
        f"{answers}, after Korn and Graubard)",
    ]
    if any(replicate.error(name) is not None for replicate in planned for name in reported):
        parts.append("survival curves have a simultaneous band (exact Kolmogorov quantile)")
    if len(reported) > 1:
        parts.append(f"a replicate counts as jointly without error where it has none on {listed(reported)}")
    if any(replicate.status in ("failed", "missing") for replicate in planned):
        parts.append(
            "numbers of replicates that failed or are missing are bounded by their being all without error and all diverged"
        )
    if caution(manifest):
        parts.append("replicates share initialisation or data seeds, for which these intervals are too narrow")
    if manifest.get("claims"):
        parts.append(judged(list(manifest["claims"])))
    return "; ".join(parts) + "."


def judged(claims: Sequence[str]) -> str:
    """The clause on the claims of a study, of which there is at least one."""
    if len(claims) == 1:
        return f"the claim {claims[0]} was judged by a rule fixed in the code"
    return f"the claims {', '.join(claims)} were judged by rules fixed in the code"


def reduced(manifest: Manifest) -> str:
    """The sentence on what differs from the study as written; empty where nothing does."""
    changes = reductions({"scale": "paper", "reductions": [], "overrides": [], **manifest})
    return f"Reduced or changed against the study as written: {'; '.join(changes).replace(' -> ', ' → ')}." if changes else ""


def made(manifest: Manifest, rows: pa.Table, verb: str = "Trained") -> str:
    """The sentence on devices, versions and commits. rows: committed ones of the planned replicates."""
    if not rows.num_rows:
        return f"No replicate has been {verb.lower()} yet."
    commits = [
        "code outside a git repository" if git is None else f"git commit {git}" + (" with uncommitted changes" if dirty else "")
        for git, dirty in zip(rows["git"].to_pylist(), rows["dirty"].to_pylist(), strict=True)
    ]
    versions = [
        ", ".join(f"{name} {value_text(name, value)}" for name, value in entries(text).items())
        for text in rows["versions"].to_pylist()
    ]
    return f"{verb} on {_tallied(rows['device'].to_pylist())}, with {_tallied(versions)}, from {_tallied(commits)}."


def same_together(texts: Mapping[str, str], total: int) -> str:
    """The texts with the conditions that share each, named where there are few; all `total` of them are “each condition”."""
    groups = grouped((text, name) for name, text in texts.items())

    def who(names: list[str]) -> str:
        if len(names) == total and total > 1:
            return "each condition"
        return listed(names) + (" each" if len(names) > 1 else "") if len(names) <= MOST else f"{len(names)} conditions, each"

    return "; ".join(f"{who(names)}: {text}" for text, names in groups.items())


def _tallied(values: Sequence[str]) -> str:
    """Distinct values, with the number of replicates of each where there are several."""
    counts = Counter(values).most_common()
    if len(counts) == 1:
        return counts[0][0]
    return "; ".join(f"{value} ({count:,} of {len(values):,} replicates)" for value, count in counts)


def listed(names: Sequence[str]) -> str:
    """Names as a list of a sentence; one with a comma of its own is quoted."""
    names = [f"“{name}”" if "," in name else name for name in names]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _mapping(node: Value) -> Tree:
    return node if isinstance(node, dict) else {}


def one_line(text: str) -> str:
    """Names may hold line breaks or control characters; a paragraph has none."""
    return " ".join("".join(character if character.isprintable() else " " for character in text).split())
