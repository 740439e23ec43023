"""Progressive distillation: does a student learn faster from its teacher's intermediate checkpoints (Panigrahi et al. 2025)?

python launch/progressive_distillation.py                                  study=parity_reduced: minutes of a core
python launch/progressive_distillation.py study=p2 scale=laptop
python launch/progressive_distillation.py study=p1 replicates=10 store=s3://bucket/runs
ray job submit --working-dir . -- python launch/progressive_distillation.py study=p1 scale=gpu-hour store=s3://bucket/runs
"""

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the checkout: the project need not be installed
    from launch.cli import family

    family("progressive_distillation", default="parity_reduced")
