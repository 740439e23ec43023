"""How far each pair is learned and how hard it pulls: gap and gradient (Sun et al. 2025, proposition 2.5)."""

import torch
from torch import nn

from harness.draw import Draw
from harness.probes.probe import Nothing, Probe, Rows, of_model
from harness.probes.strings import SEED
from tasks.subsequences.associations import Associations


def associations(model: nn.Module, task: Associations, count: int, settings: Nothing) -> Rows:
    """Three rows a pair, over `count` strings that hold it, the same ones but for the pair; the model is a pack with R = 1.

    "pair=3 frequency": the probability f that a string has it, exact. "pair=3 gap": |mean p̂(own answer) - P(own answer)|. "pair=3
    gradient": f · ‖gradient over all parameters of the mean loss over these strings‖; the loss is the cross entropy with the exact law
    of the answer, so that no drawn answer adds noise.
    """
    law, frequencies, own = task.law(Draw.of_seed), task.frequencies().tolist(), task.table(Draw.of_seed)[:, 2].tolist()
    draw = Draw(torch.tensor([SEED]), "evaluate")
    last = torch.full((1, count, 1), task.length - 1)
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    rows = []
    for pair, frequency in enumerate(frequencies):
        inputs = task.holding(draw, torch.full((1, count), pair)).inputs
        said = model(inputs, (last,))[0, :, 0].double().log_softmax(-1)  # [count, answers]
        gradients = torch.autograd.grad(-(said @ law[pair]).mean(), parameters, allow_unused=True)
        square = sum(float(gradient.double().square().sum()) for gradient in gradients if gradient is not None)
        gap = abs(float(said.detach()[:, own[pair]].exp().mean()) - float(law[pair, own[pair]]))
        values = {"frequency": frequency, "gap": gap, "gradient": frequency * square**0.5}
        rows += [(f"pair={pair} {item}", value) for item, value in values.items()]
    return of_model(rows)


ASSOCIATIONS = Probe(
    associations,
    lambda model, task: isinstance(task, Associations),
    "models of associations that have not diverged",
    every_step=True,
)
