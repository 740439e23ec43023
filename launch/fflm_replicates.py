"""Replicates of flip-flop language modelling (Liu et al. 2023): attention glitches, and the tail of their errors.

python launch/fflm_replicates.py                                          study=quick: a first report within 2 minutes
python launch/fflm_replicates.py study=lstm scale=laptop
python launch/fflm_replicates.py study=baseline replicates=25 store=s3://bucket/runs
ray job submit --working-dir . -- python launch/fflm_replicates.py study=baseline store=s3://bucket/runs
"""

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the checkout: the project need not be installed
    from launch.cli import family

    family("fflm", default="quick")
