"""What reports say of in-context n-grams beside what they say of every study."""

from results.report.family import ReportFamily
from results.report.ngrams import page

FAMILY = ReportFamily(
    sections=(page.drawings,),
    errors={"in_context_ngram": "a position whose most probable next token is another one in the string's own language"},
)
