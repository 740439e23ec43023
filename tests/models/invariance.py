"""A replicate's losses and gradients have the same bits alone, in a pack, at another place of a pack, and beside blocks of no weight."""

import torch

import models
from harness.draw import Draw
from models.noise import Noise
from tests.rounding import assert_same

SEEDS = (3, 4, 5)


def build(name, seeds, vocabulary, length, outputs=None, **fields):
    draw = Draw(torch.tensor(seeds), "init")
    return models.configure(name, **fields).make(draw, vocabulary, length, outputs)


def noise(seeds, **rates):
    """Noise of step 7 for the replicates with these seeds; rates by option, as many as seeds."""
    draw = Draw(torch.tensor(seeds), "dropout", 7)
    return Noise(draw, Draw(torch.tensor(seeds), "shift", 7), {name: torch.tensor(rate) for name, rate in rates.items()})


def check_same_in_any_pack(name, tokens, vocabulary, length, needed=None, outputs=None, rates=None, **fields):
    """tokens [3, …]: the strings of three replicates; rates: three of them by option. Every gradient must differ from zero somewhere.

    With `needed`, a further block that is in no loss must change no bit either: where one replicate's string has more positions than the
    first block, all have a second.
    """

    def run(slots, further=()):
        seeds = [SEEDS[slot] for slot in slots]
        pack = build(name, seeds, vocabulary, length, outputs, **fields)
        with torch.no_grad():  # away from parameters that start at zero
            for number, parameter in enumerate(pack.parameters()):
                wiggle = torch.randn(len(SEEDS), *parameter.shape[1:], generator=torch.Generator().manual_seed(number))
                parameter.add_(0.1 * wiggle[slots])
        scene = noise(seeds, **{option: [rate[slot] for slot in slots] for option, rate in (rates or {}).items()})
        logits = pack(tokens[slots], None if needed is None else [block[slots] for block in (*needed, *further)], scene)
        flat = (logits if needed is None else logits[:, :, : sum(block.shape[2] for block in needed)]).flatten(0, -2)
        targets = torch.arange(len(flat) // len(slots)).repeat(len(slots)) % flat.shape[-1]
        losses = torch.nn.functional.cross_entropy(flat, targets, reduction="none").view(len(slots), -1).mean(-1)
        losses.sum().backward()
        return losses.detach(), {name: parameter.grad for name, parameter in pack.named_parameters()}

    together, gradients = run([0, 1, 2])
    assert torch.isfinite(together).all()
    assert len(set(together.tolist())) == 3
    for slots in ([0], [1], [2], [2, 0]):
        losses, others = run(slots)
        assert torch.equal(losses, together[slots]), f"the losses of {slots} alone differ"
        for parameter, gradient in others.items():
            assert torch.equal(gradient, gradients[parameter][slots]), f"the gradient of {parameter} of {slots} differs"
    if needed is not None:
        losses, others = run([0, 1, 2], needed)
        assert torch.equal(losses, together), "a further block changes the losses"
        for parameter, gradient in others.items():
            assert torch.equal(gradient, gradients[parameter]), f"a further block changes the gradient of {parameter}"
    for parameter, gradient in gradients.items():
        assert gradient.abs().max() > 0, f"{parameter} has no gradient"


def strings(*shape, vocabulary, seed=0):
    return torch.randint(0, vocabulary, shape, generator=torch.Generator().manual_seed(seed))


def check_needed_equals_full(name, tokens, vocabulary, length, blocks, **fields):
    """Logits and gradients at blocks of positions alone equal the full call's, gathered; with `attend` too where the model attends.

    In float64, where another order of a sum is far below any other difference.

    Returns what `attend` was called with.
    """
    few, full, seen = (build(name, SEEDS, vocabulary, length, **fields).double() for _ in range(3))
    for pack in (few, full, seen):
        with torch.no_grad():
            for number, parameter in enumerate(pack.parameters()):
                parameter.add_(0.2 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(number)))
    order = torch.cat(blocks, dim=-1)
    everything = full(tokens)
    trailing = everything.shape[3:]
    order = order.view(*order.shape, *[1] * len(trailing)).expand(*order.shape, *trailing)
    gathered = everything.gather(2, order)
    outputs = [few(tokens, blocks), gathered]
    maps = []
    if getattr(models.REGISTRY[name], "attends", False):
        outputs.append(seen(tokens, blocks, None, lambda layer, weights: maps.append((layer, weights))))
    factors = torch.randn(gathered.shape, generator=torch.Generator().manual_seed(9), dtype=torch.float64)
    for output in outputs:
        assert_same(output, gathered)
        (output * factors).sum().backward()
    for pack in (few, full, seen)[: len(outputs)]:
        for (parameter, one), other in zip(pack.named_parameters(), full.parameters(), strict=True):
            assert_same(one.grad, other.grad, parameter)
    return maps
