"""Single errors of a trained model: where they are, by how much the wrong bit wins, and where every head looks there.

"Attention glitches": Liu, Ash, Goel, Krishnamurthy, Zhang, "Exposing attention glitches with flip-flop language modeling" (NeurIPS 2023);
what is looked at follows Liu's thesis, 3.5.6.5, figures 3.35 and 3.37.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from harness.machine.precision import autocast
from harness.planning.pack import ScoredSet
from harness.probes.flipflop.heads import look
from harness.probes.flipflop.wrong_reads import wrong_reads
from harness.training.evaluate import batch_size
from models.transformer.transformer import Decoder
from tasks.flipflop.flipflop import SYMBOL, FlipFlop
from tasks.flipflop.simulation import Simulation
from tasks.task import Task

KEPT = 16  # keys of a head and glitch
_ELEMENTS = 2**24  # of attention weights of all layers in a forward pass


@dataclass(frozen=True)
class Glitches:
    """N errors of a model on an evaluation set, in the order of its strings; int64 [N] but tokens [N, T] and margin float64 [N].

    string: its number in the set. position: of the query. answer, right: classes. margin: logit of the wrong bit minus the right one, of
    several wrong ones the largest. write: where the bit stands that answers. since_write, since_event: as the task counts them. looked:
    strings that were searched.
    """

    string: Tensor
    position: Tensor
    tokens: Tensor
    answer: Tensor
    right: Tensor
    margin: Tensor
    write: Tensor
    since_write: Tensor
    since_event: Tensor
    looked: int


@torch.no_grad()
def glitches(model: nn.Module, scored: ScoredSet, limit: int, device: torch.device, precision: str) -> Glitches:
    """The first `limit` errors (those that the study reports) of a pack with R = 1 on a set, scored as the study scored
    it; no string after them is looked at. The task is FlipFlop or Simulation.
    """
    task, searched, count = scored.task, 0, 0
    parts: list[dict[str, Tensor]] = []
    for reads in wrong_reads(model, scored, task.metrics[0], device, precision):
        batch, wanted = reads.batch, reads.wanted
        string, place = reads.wrong.nonzero()[: limit - count].unbind(-1)
        own = {"since_write": wanted.of(batch.about["since_write"])[0]}
        own["since_event"] = wanted.of(batch.about.get("since_event", batch.about["since_write"]))[0]
        own |= {"position": reads.position, "right": wanted.targets[0]}
        part = {name: values[string, place].cpu() for name, values in own.items()}
        part |= {"string": (string + reads.first).cpu(), "tokens": batch.inputs[0, string].cpu()}
        said = reads.logits[0, string, place]
        part |= {"margin": margin(task, said, wanted.targets[0, string, place]).cpu(), "answer": said.argmax(-1).cpu()}
        parts.append(part)
        searched, count = reads.first + batch.inputs.shape[1], count + len(string)
        if count >= limit:
            break
    joined = {name: torch.cat([part[name] for part in parts]) for name in parts[0]}
    if count >= limit:  # strings after the last glitch do not count as searched
        searched = int(joined["string"][-1]) + 1
    return Glitches(write=last_write(task, joined["position"], joined["since_write"]), looked=searched, **joined)


def margin(task: Task, logits: Tensor, right: Tensor) -> Tensor:
    """Logit of the wrong bit (of several the largest) minus the right one's, float64 [N]: logits [N, V], right [N] classes."""
    first = SYMBOL if isinstance(task, FlipFlop) else 0
    bits = logits[:, first:].double()
    own = bits.gather(-1, (right - first)[:, None])
    others = bits.scatter(-1, (right - first)[:, None], -torch.inf)
    return others.amax(-1) - own[:, 0]


def last_write(task: Task, position: Tensor, since_write: Tensor) -> Tensor:
    """Where the bit of the last write stands: the language has it after its `w`, and counts distances in instructions."""
    return position - since_write if isinstance(task, Simulation) else position - 2 * since_write + 1


@torch.no_grad()
def answers(
    model: nn.Module, scored: ScoredSet, errors: Glitches, device: torch.device, precision: str
) -> tuple[Tensor, Tensor]:
    """Another model at the same places: its margins float64 [N], and where it is wrong too, bool [N]."""
    task = scored.task
    margins, wrong = [torch.empty(0, dtype=torch.float64)], [torch.empty(0, dtype=torch.bool)]
    for part in torch.arange(len(errors.string)).split(batch_size(scored, device)):
        at = errors.position[part].to(device)[None, :, None]
        with autocast(device, precision):
            given = model(errors.tokens[part].to(device)[None], (at,))
        logits, right = given[0, :, 0].float(), errors.right[part].to(device)
        margins.append(margin(task, logits, right).cpu())
        wrong.append(task.wrong(logits, right)[task.metrics[0]].cpu())
    return torch.cat(margins), torch.cat(wrong)


def attended(model: Decoder, errors: Glitches, kept: int = KEPT) -> Iterator[dict[str, Tensor]]:
    """Where each head looks in the row of each glitch, one glitch after another, in their order.

    keys int64, weights a_ij and norms ‖a_ij v_j‖ float64 [L, H, K] of K = min(kept, T) keys: the last write's bit, then
    those with the largest weight or share of the row's norms, the largest first; totals [L, H]: the row's sum of norms over all keys.
    """
    length = errors.tokens.shape[1]
    config = model.config
    size = max(1, _ELEMENTS // (config.layers * config.heads * length**2))
    device = model.tokens.device
    distinct = errors.string.unique()  # several glitches of a string share its pass
    first_of = torch.searchsorted(errors.string, distinct)
    for chunk in torch.arange(len(distinct)).split(size):
        seen = look(model, errors.tokens[first_of[chunk]].to(device))
        for place, one in enumerate(chunk.tolist()):
            rows = (errors.string == distinct[one]).nonzero()[:, 0].tolist()
            weights = torch.stack([layer[place] for layer in seen.weights])  # [L, H, T, T]
            values = torch.stack([layer[place] for layer in seen.norms])  # [L, H, T]
            for row in rows:
                yield _row(weights[:, :, errors.position[row]].cpu(), values.cpu(), int(errors.write[row]), min(kept, length))


def _row(weights: Tensor, values: Tensor, write: int, kept: int) -> dict[str, Tensor]:
    """What `attended` gives of one row: weights and norms of values [L, H, T]."""
    norms = weights * values
    totals = norms.sum(-1)
    large = torch.maximum(weights, norms / totals[..., None].clamp(min=torch.finfo(torch.float64).tiny))
    large[..., write] = torch.inf
    keys = large.topk(kept, -1).indices
    return {"keys": keys, "weights": weights.gather(-1, keys), "norms": norms.gather(-1, keys), "totals": totals}
