from typing import Any

from harness.experiments.ngrams.stationarity import Stationarity

EXPERIMENTS: dict[str, type[Any]] = {"ngram_stationarity": Stationarity}
