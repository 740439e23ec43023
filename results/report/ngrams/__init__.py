"""The parts of reports that are of studies on in-context n-grams."""

from results.report.citations import Reference, entry
from results.report.family import ReportFamily
from results.report.ngrams import page
from results.report.ngrams.paper_shows import SHOWS

VARRE = Reference(
    "A. Varre, G. Yüce and N. Flammarion. Learning In-context n-grams with Transformers: Sub-n-grams Are Near-stationary Points. "
    "ICML 2025. arXiv:2508.12837.",
    entry(
        "inproceedings",
        "varre2025learning",
        author='Varre, Aditya and Y{\\"u}ce, Gizem and Flammarion, Nicolas',
        title="Learning In-context $n$-grams with Transformers: Sub-$n$-grams Are Near-stationary Points",
        booktitle="International Conference on Machine Learning",
        year="2025",
        eprint="2508.12837",
        archiveprefix="arXiv",
    ),
)

FAMILY = ReportFamily(
    sections=(page.drawings,),
    key_figures=("ngram-losses",),
    paper_shows=SHOWS,
    errors={"in_context_ngram": "a position whose most probable next token is another one in the string's own language"},
    references={"in_context_ngrams": (VARRE,)},
)
