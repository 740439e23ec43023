"""The parts of reports that are of studies on Dyck languages."""

from results.report.citations import LI_THESIS, Reference, entry
from results.report.dyck import page
from results.report.dyck.paper_shows import SHOWS
from results.report.family import ReportFamily

WEN = Reference(
    "K. Wen, Y. Li, B. Liu and A. Risteski. Transformers are uninterpretable with myopic methods: a case study with bounded Dyck "
    "grammars. NeurIPS 2023.",
    entry(
        "inproceedings",
        "wen2023transformers",
        author="Wen, Kaiyue and Li, Yuchen and Liu, Bingbin and Risteski, Andrej",
        title="Transformers are uninterpretable with myopic methods: a case study with bounded Dyck grammars",
        booktitle="Advances in Neural Information Processing Systems",
        year="2023",
    ),
)

FAMILY = ReportFamily(
    paper_shows=SHOWS,
    sections=(page.drawings,),
    key_figures=("balance-accuracy", "balance-length", "attention-variation", "attention-maps"),
    errors={
        "dyck": "a closing bracket whose type the model's most probable closing bracket does not have",
        "dyck_copy": "a bracket that the model does not repeat",
    },
    references={"dyck": (LI_THESIS, WEN)},
)
