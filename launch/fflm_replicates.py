"""Replicates of flip-flop language modelling (Liu et al. 2023): attention glitches, and the tail of their errors.

python launch/fflm_replicates.py                                          quick on a CPU, baseline where there is a GPU
python launch/fflm_replicates.py study=lstm scale=laptop
python launch/fflm_replicates.py study=baseline replicates=25 store=s3://bucket/runs
ray job submit --working-dir . -- python launch/fflm_replicates.py store=s3://bucket/runs
"""

from harness.device import gpu_at_hand
from launch.cli import family

if __name__ == "__main__":
    family("fflm", default=lambda: "baseline" if gpu_at_hand() else "quick")
