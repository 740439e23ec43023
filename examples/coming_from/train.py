"""A linear classifier of scikit-learn's digits: python train.py --lr 0.1 --seed 3 --out metrics.jsonl"""

import argparse
import json

from sklearn.datasets import load_digits
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import train_test_split


def accuracy(lr, seed):
    inputs, labels = load_digits(return_X_y=True)
    known, unseen, given, expected = train_test_split(inputs / 16, labels, random_state=0)
    model = SGDClassifier(learning_rate="constant", eta0=lr, max_iter=5, tol=None, random_state=seed)
    return model.fit(known, given).score(unseen, expected)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--out")
    options = parser.parse_args()
    with open(options.out, "w") as stream:
        stream.write(json.dumps({"accuracy": accuracy(options.lr, options.seed)}) + "\n")
