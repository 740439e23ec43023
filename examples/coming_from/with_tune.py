from ray import tune
from train import accuracy


def train(config):
    tune.report({"accuracy": accuracy(config["lr"], config["seed"])})


space = {"lr": tune.grid_search([0.01, 0.1]), "seed": tune.grid_search(list(range(20)))}
results = tune.Tuner(train, param_space=space).fit()
print(results.get_dataframe()[["config/lr", "config/seed", "accuracy"]])
