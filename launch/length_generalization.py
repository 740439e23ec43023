"""Length generalization: which models that are right at the training length stay right beyond it, over seeds (Liu 2024, Huang et al. 2025).

python launch/length_generalization.py                                     study=a1_reduced: minutes of a core
python launch/length_generalization.py study=a7 scale=laptop
python launch/length_generalization.py study=a1 replicates=5 store=s3://bucket/runs
ray job submit --working-dir . -- python launch/length_generalization.py study=a1 store=s3://bucket/runs
"""

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the checkout: the project need not be installed
    from launch.cli import family

    family("length_generalization", default="a1_reduced")
