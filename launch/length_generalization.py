"""Length generalization: which models that are right at the training length stay right beyond it, over seeds (Liu 2024, Huang et al. 2025).

python launch/length_generalization.py                                     a1_reduced on a CPU, a1 where there is a GPU
python launch/length_generalization.py study=a7 scale=laptop
python launch/length_generalization.py study=a1 replicates=5 store=s3://bucket/runs
ray job submit --working-dir . -- python launch/length_generalization.py store=s3://bucket/runs
"""

from harness.device import gpu_at_hand
from launch.cli import family

if __name__ == "__main__":
    family("length_generalization", default=lambda: "a1" if gpu_at_hand() else "a1_reduced")
