from typing import Any

from harness.experiments.generation.verified_sampling import VerifiedSampling

EXPERIMENTS: dict[str, type[Any]] = {"verified_sampling": VerifiedSampling}
