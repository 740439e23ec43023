from tasks.ngrams.in_context import InContextNgram
from tasks.task import Task

TASKS: dict[str, type[Task]] = {"in_context_ngram": InContextNgram}
