"""The paper's claims as code: what the claim is, what must hold before it is asked, the query, the test and the verdict.

A new claim is one `Claim` in a file of its family and one line of `REGISTRY` (docs/adding-a-claim.md). A study states what it bears on in
its section `claims`; `scoreboard` holds the rows of its store against them.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from results.claims.automata import curves as automata_curves
from results.claims.automata import depth as automata_depth
from results.claims.automata import growth as automata_growth
from results.claims.automata import heads as automata_heads
from results.claims.automata import length as automata_length
from results.claims.automata import shift as automata_shift
from results.claims.automata import supervision as automata_supervision
from results.claims.claim import REPRODUCED, SCALED, TERMS, Claim, Finding, Settled, Terms, Verdict, terms_of
from results.claims.distillation import curriculum as distillation_curriculum
from results.claims.distillation import measures as distillation_measures
from results.claims.distillation import parity as distillation_parity
from results.claims.distillation import pcfg as distillation_pcfg
from results.claims.distillation import sweep as distillation_sweep
from results.claims.distillation import transformers as distillation_transformers
from results.claims.evidence import Evidence, gather
from results.claims.flipflop import choices, context, data, language, tail, theory
from results.claims.lego import attention as lego_attention
from results.claims.lego import lengths as lego
from results.claims.lego import stages as lego_stages
from results.claims.subsequences import additivity as subsequence_additivity
from results.claims.subsequences import alignment as subsequence_alignment
from results.claims.subsequences import capacity as subsequence_capacity
from results.claims.subsequences import depth as subsequence_depth
from results.claims.subsequences import gradients as subsequence_gradients
from results.claims.subsequences import growth as subsequence_growth
from results.errors import DamagedFile, StudyError
from results.rows.probe_values import Name, by_key
from results.rows.summary import replicates_of
from results.store.manifest import newest_manifest, reported
from results.store.tables import Store, committed, read

REGISTRY: dict[str, Claim] = {
    "R1": tail.R1,
    "R2": tail.R2,
    "R3": language.R3,
    "R4": data.R4,
    "R5": data.R5,
    "R6": choices.R6,
    "R7": choices.R7,
    "R8": choices.R8,
    "T0": context.T0,
    "T2": theory.T2,
    "T3": theory.T3,
    "A1": automata_depth.A1,
    "A1-depth": automata_depth.A1_DEPTH,
    "A1-seeds": automata_depth.A1_SEEDS,
    "A1-order": automata_depth.A1_ORDER,
    "A2": automata_curves.A2,
    "A3": automata_heads.A3,
    "A4": automata_supervision.A4,
    "A4-positions": automata_supervision.A4_POSITIONS,
    "A5": automata_supervision.A5,
    "A6": automata_shift.A6,
    "A6-low": automata_shift.A6_LOW,
    "A7": automata_length.A7,
    "A7-shift": automata_length.A7_SHIFT,
    "A7-recency": automata_length.A7_RECENCY,
    "A8": automata_length.A8,
    "D1": automata_growth.D1,
    "L1": lego.L1,
    "L2": lego.L2,
    "L3": lego_attention.L3,
    "L4": lego_attention.L4,
    "L5": lego_attention.L5,
    "L6": lego_stages.L6,
    "L7": lego_stages.L7,
    "L8": lego_stages.L8,
    "PD-R1": distillation_curriculum.R1,
    "PD-R1-low": distillation_curriculum.R1_LOW,
    "PD-R2": distillation_parity.R2,
    "PD-R3": distillation_parity.R3,
    "PD-R4": distillation_sweep.R4,
    "PD-R5": distillation_measures.R5,
    "PD-R6": distillation_transformers.R6,
    "PD-R6-width": distillation_curriculum.R6_WIDTH,
    "PD-R7": distillation_pcfg.R7,
    "PD-R7-horizon": distillation_pcfg.R7_HORIZON,
    "PD-R7-tokens": distillation_pcfg.R7_TOKENS,
    "PD-P13": distillation_pcfg.P13,
    "PD-P13-one-shot": distillation_pcfg.P13_ONE_SHOT,
    "S1": subsequence_depth.S1,
    "S1-below": subsequence_depth.S1_BELOW,
    "S2": subsequence_capacity.S2,
    "S3": subsequence_growth.S3,
    "S3-adam": subsequence_growth.S3_ADAM,
    "S4": subsequence_gradients.S4,
    "S5": subsequence_additivity.S5,
    "S6": subsequence_alignment.S6,
}
REDUCING = ("task.", "model.", "train.", "evaluate.", "conditions.", "grid.", "only=")


def scoreboard(store: Store) -> list[Verdict]:
    """A verdict on each claim that the study's newest manifest states, in its order; [] where it states none.

    Raises ValueError where there is no manifest, or one that states a claim this code does not know.
    """
    newest = newest_manifest(store)
    if newest is None:
        raise StudyError(f"{store.path()} holds no study: run it first")
    manifest = newest[1]
    if not manifest.get("claims"):
        return []
    finished = committed(store)
    rows = read(store, "evaluations", filter=reported(manifest), winning=finished)
    known = replicates_of(manifest, finished, rows, read(store, "failures"))
    measured = read(store, "probes", winning=finished)
    losses = read(store, "curves", filter=pc.field("metric") == "loss", winning=finished)
    return verdicts(manifest, known, by_key(measured), rows, measured, losses)


def verdicts(
    manifest: dict[str, Any],
    known: list[Any],
    probes: Mapping[str, Mapping[Name, float]] | None = None,
    evaluations: pa.Table | None = None,
    measured: pa.Table | None = None,
    losses: pa.Table | None = None,
) -> list[Verdict]:
    """As `scoreboard`, from a manifest, the replicates of `results.rows.summary.replicates_of`, the values of
    `results.rows.probe_values.by_key`, the evaluations of every step, the table `probes`, and the losses of the table `curves`."""
    stated = manifest.get("claims") or {}
    if not stated:
        return []
    unknown = [name for name in stated if name not in REGISTRY]
    if unknown:
        raise DamagedFile(f"the manifest of {manifest['study']} states the claim {unknown[0]}; there is {', '.join(REGISTRY)}")
    evidence = gather(manifest, known, probes, evaluations, measured, losses)
    scaled = bool(reductions(manifest))
    return [_verdict(REGISTRY[name], terms_of(REGISTRY[name], node), evidence, scaled) for name, node in stated.items()]


def reductions(manifest: dict[str, Any]) -> list[str]:
    """What is printed beside a verdict that is not at the paper's scale: the scale, its reductions, and what the command line changed."""
    scale = [f"scale: {manifest['scale']}"] if manifest["scale"] != "paper" else []
    changed = [each for each in manifest["overrides"] if each.startswith(REDUCING)]
    return [*scale, *manifest["reductions"], *changed]


def _verdict(claim: Claim, terms: Terms, evidence: Evidence, scaled: bool) -> Verdict:
    try:
        finding: Finding = claim.judge(evidence, terms, terms.replicates or claim.needs)
    except Settled as settled:
        finding = settled.finding
    if scaled and finding.verdict == REPRODUCED:
        finding = replace(finding, verdict=SCALED)
    return Verdict(claim, terms, finding)


__all__ = ["REGISTRY", "TERMS", "Claim", "Terms", "Verdict", "reductions", "scoreboard", "terms_of", "verdicts"]
