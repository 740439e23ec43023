import wandb
from train import accuracy

with wandb.init() as run:
    run.log({"accuracy": accuracy(run.config.lr, run.config.seed)})
