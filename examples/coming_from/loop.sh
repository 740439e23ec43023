mkdir -p out
for lr in 0.01 0.1; do
  for seed in $(seq 0 19); do
    python train.py --lr $lr --seed $seed --out out/$lr-$seed.jsonl
  done
done
