"""The families whose reports have parts of their own; a new one adds its line."""

from results.report import automata, distillation, dyck, flipflop, generation, lego, ngrams, subsequences
from results.report.family import ReportFamily

FAMILIES: tuple[ReportFamily, ...] = (
    flipflop.FAMILY,
    automata.FAMILY,
    lego.FAMILY,
    distillation.FAMILY,
    subsequences.FAMILY,
    ngrams.FAMILY,
    generation.FAMILY,
    dyck.FAMILY,
)
