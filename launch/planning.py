"""`manyseeds plan`: what a study will cost, or what a store already holds of it."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import harness.manifest as manifests
from harness.configuration import Study
from harness.plan import replicates_of, signature
from harness.provenance import code_state, versions
from harness.run import announce, executor_of, prepare, store_uri
from results.store import committed, open_store


def show_plan(study: Study, write: str | None, say: Callable[[str], None]) -> None:
    """Measure the shapes of a study and print its cost; `write` a manifest for a machine that has only torch and pyarrow."""
    executor = executor_of(study)
    try:
        prepared = prepare(study, executor)
    finally:
        executor.close()
    announce(prepared, say)
    for name, rate in prepared.rates.items():
        names = [c.name for c in study.conditions if signature(c, study.sets) == name]
        steps = next(c.train.steps for c in study.conditions if signature(c, study.sets) == name)
        shown = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
        say(f"  {shown}: packs of {rate.size}, {rate.pack_seconds(steps) / rate.size:.3g} s a replicate")
    if write:
        commit, dirty = code_state()
        Path(write).write_bytes(
            manifests.to_bytes(manifests.build(prepared.plan, prepared.numerics, versions(), commit, dirty))
        )
        say(f"manifest: {write}")


def show_diff(study: Study, say: Callable[[str], None]) -> None:
    """Per condition: replicates planned, held with every evaluation set, held without some set, missing."""
    store = open_store(store_uri(study.store), study.name)
    rows = committed(store).select(["key", "sets"]).to_pylist()
    held = {row["key"]: set(row["sets"]) for row in rows}
    counts: dict[int, Counter[str]] = {index: Counter() for index in range(len(study.conditions))}
    wanted = [set(study.set_hashes(condition).values()) for condition in study.conditions]
    planned = set()
    for replicate in replicates_of(study.conditions):
        planned.add(replicate.key)
        sets = held.get(replicate.key)
        state = "missing" if sets is None else "held" if sets >= wanted[replicate.condition] else "lacks a set"
        counts[replicate.condition][state] += 1
    for index, condition in enumerate(study.conditions):
        count = counts[index]
        parts = [f"{count[state]} {state}" for state in ("held", "lacks a set", "missing") if count[state]]
        say(f"{condition.name}: {len(condition.seeds)} planned, {', '.join(parts)}")
    extra = len(set(held) - planned)
    if extra:
        say(f"{extra} replicates in the store are not of this study file: they stay")
