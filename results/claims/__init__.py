"""The paper's claims as code: what the claim is, what must hold before it is asked, the query, the test and the verdict.

A new claim is one `Claim` in a file of its family and its name in that family's `CLAIMS`; a new family is its name in `FAMILIES`
(docs/guides/adding-a-claim.md). A study states what it bears on in its section `claims`; `scoreboard` holds the rows of
its store against them.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Unpack

import pyarrow.compute as pc

from results.claims import automata, distillation, dyck, flipflop, generation, lego, ngrams, subsequences
from results.claims.claim import (
    NOT_REPRODUCED,
    NOT_REPRODUCED_SCALED,
    REPRODUCED,
    SCALED,
    TERMS,
    Claim,
    Finding,
    Settled,
    Terms,
    Verdict,
    by_id,
    terms_of,
)
from results.claims.evidence import Evidence, Tables, gather
from results.errors import DamagedFile
from results.rows.looks import averages, watched
from results.rows.probe_values import by_key
from results.rows.study_rows import read_study
from results.rows.summary import Replicate
from results.store.manifest import Manifest, manifest_of, reductions_of
from results.store.schema import LABELS_RIGHT
from results.store.tables import Store, read

FAMILIES = (flipflop, automata, lego, distillation, subsequences, ngrams, generation, dyck)
REGISTRY: dict[str, Claim] = by_id(claim for family in FAMILIES for claim in family.CLAIMS.values())
AT_ANOTHER_SIZE = {REPRODUCED: SCALED, NOT_REPRODUCED: NOT_REPRODUCED_SCALED}
# keys of a study that change what a verdict is of: the size, what is listed as smaller, or the criterion
REDUCING = {*"task model train stages experiment evaluate conditions grid sweeps only reductions claims".split()}


def scoreboard(store: Store) -> list[Verdict]:
    """A verdict on each claim that the study's newest manifest states, in its order; [] where it states none.

    Raises ValueError where there is no manifest, or one that states a claim this code does not know.
    """
    manifest = manifest_of(store)
    if not manifest.get("claims"):
        return []
    study = read_study(store, manifest)
    measured = read(store, "probes", winning=study.committed)
    curves = read(store, "curves", filter=pc.field("metric").isin(["loss", LABELS_RIGHT]), winning=study.committed)
    return verdicts(
        manifest,
        study.replicates,
        probes=by_key(measured),
        evaluations=study.evaluations,
        measured=measured,
        curves=curves,
        averages=averages(store, study.committed),
        watched=watched(store, study.committed),
    )


def verdicts(manifest: Manifest, replicates: Sequence[Replicate], **tables: Unpack[Tables]) -> list[Verdict]:
    """As `scoreboard`, from a manifest, the replicates of `results.rows.summary.replicates_of`, and what else was read."""
    stated = manifest.get("claims") or {}
    if not stated:
        return []
    unknown = [name for name in stated if name not in REGISTRY]
    if unknown:
        raise DamagedFile(f"the manifest of {manifest['study']} states the claim {unknown[0]}; there is {', '.join(REGISTRY)}")
    evidence = gather(manifest, replicates, **tables)
    scaled = bool(reductions(manifest))
    return [_verdict(REGISTRY[name], terms_of(REGISTRY[name], node), evidence, scaled) for name, node in stated.items()]


def reductions(manifest: Manifest) -> list[str]:
    """Lines that explain a verdict "(scaled)": the scale, its reductions, and what the command line changed."""
    scale = [f"scale: {manifest['scale']}"] if manifest["scale"] != "paper" else []
    changed = [override for override in manifest["overrides"] if _changes_verdicts(override)]
    return [*scale, *reductions_of(manifest), *changed]


def _changes_verdicts(override: str) -> bool:
    """Whether `key=value` sets one of REDUCING or a part of it. `claims.NAME=null` leaves a claim out, and so changes no verdict."""
    key, _, value = override.partition("=")
    section, *parts = key.split(".")
    return section in REDUCING and (section, len(parts), value) != ("claims", 1, "null")


def _verdict(claim: Claim, terms: Terms, evidence: Evidence, scaled: bool) -> Verdict:
    try:
        finding: Finding = claim.judge(evidence, terms, terms.replicates or claim.needs)
    except Settled as settled:
        finding = settled.finding
    if scaled:
        finding = replace(finding, verdict=AT_ANOTHER_SIZE.get(finding.verdict, finding.verdict))
    return Verdict(claim, terms, finding)


__all__ = ["REGISTRY", "TERMS", "Claim", "Terms", "Verdict", "reductions", "scoreboard", "terms_of", "verdicts"]
