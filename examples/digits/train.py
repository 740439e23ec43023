"""A plain PyTorch script: a small network on the digits of scikit-learn. It writes one JSON line per epoch."""

import argparse
import json

import torch
from sklearn.datasets import load_digits
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--width", type=int, default=32)
parser.add_argument("--lr", type=float, default=1e-2)
parser.add_argument("--epochs", type=int, default=10)
parser.add_argument("--out", default="metrics.jsonl")
args = parser.parse_args()

torch.manual_seed(args.seed)
images, labels = load_digits(return_X_y=True)
images = torch.tensor(images, dtype=torch.float32) / 16
labels = torch.tensor(labels)
order = torch.randperm(len(images))
train, test = order[:1400], order[1400:]

model = nn.Sequential(nn.Linear(64, args.width), nn.ReLU(), nn.Linear(args.width, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)

with open(args.out, "w") as stream:
    for epoch in range(1, args.epochs + 1):
        for batch in train[torch.randperm(len(train))].split(64):
            loss = nn.functional.cross_entropy(model(images[batch]), labels[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            accuracy = (model(images[test]).argmax(1) == labels[test]).float().mean().item()
        stream.write(json.dumps({"step": epoch, "accuracy": accuracy, "loss": loss.item()}) + "\n")
