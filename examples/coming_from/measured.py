import train


def measure(seed, settings):
    return {"accuracy": train.accuracy(settings["lr"], seed)}
