"""How long a training step must take on an H200, by a model of its traffic and arithmetic, and how many operations it needs.

The model has bf16 products at 85 % of the peak or at the bandwidth; attention at its own rate, with heads padded to 32 and a softmax bound
by its exponentials; elementwise passes over activations; and AdamW's traffic. Bytes assume packs that exceed the cache. All of this is an
estimate until it is compared with a measurement.
"""

from dataclasses import dataclass

from benchmarks.cases import Case
from harness.planning.gpu_model import HEAD, PRODUCTS
from harness.planning.gpus import H200
from models.lstm import LSTM
from models.mlp import MLP
from models.transformer.transformer import Transformer
from tasks.task import Task

# H200: ceilings measured on such machines, FLOP/s in bf16 and byte/s
PEAK, BANDWIDTH = H200.products["bf16"], H200.bandwidth
_BACKWARD = 2.5  # of attention's forward FLOP: it computes the scores again
_PASSES = {"eager": 61, "fused": 40}  # elementwise passes over [N, D] a layer and step
_ADAMW = 34  # bytes a parameter
# of one process with one replicate: dispatch by the host of a step, ms, and launches, both as intercept and slope a layer
_DISPATCH_MS, _LAUNCHES, _LAUNCH_MS = (0.45, 0.388), (26, 49), 2.5e-3


@dataclass(frozen=True)
class Step:
    """A step of one replicate.

    flop: of training, forward and twice that backward; eager_us, fused_us: on the GPU, when a pack fills it; alone_us: of one eager
    process, which waits for its host.
    """

    parameters: int
    flop: float
    eager_us: float
    fused_us: float
    alone_us: float


def transformer(model: Transformer, vocabulary: int, length: int, batch: int, scored: float | None = None) -> Step:
    """The step of the baseline family. scored: positions a string that the loss needs (None: all are computed)."""
    width, layers = model.width, model.layers
    parameters = layers * (12 * width**2 + 9 * width) + width * (vocabulary + length + 2) + vocabulary * (width + 1)
    everywhere = batch * length
    flop, fused, passes = 0.0, 0.0, 0.0
    for layer in range(layers):
        last = scored is not None and layer == layers - 1
        rows = batch * scored if last and scored is not None else everywhere
        products = [(everywhere, width, 2 * width), (rows, width, width)] if last else [(everywhere, width, 3 * width)]
        products += [(rows, width, width), (rows, width, 4 * width), (rows, 4 * width, width)]
        flop += sum(_product_flop(*product) for product in products)
        fused += sum(_product_s(*product) for product in products)
        scores = rows * model.heads * length / 2  # causal
        head = width // model.heads
        flop += 3 * 4 * scores * head
        fused += (1 + _BACKWARD) * 4 * scores * max(HEAD, head) / H200.attention + scores * H200.score_s
        # of the 9·D numbers that a layer's products write a token, keys and values are two
        passes += (2 * everywhere + 7 * rows) / 9 * width * 2 / BANDWIDTH
    flop += _product_flop(everywhere if scored is None else batch * scored, width, vocabulary)
    fused += parameters * _ADAMW / BANDWIDTH
    times = {kind: (fused + count * passes) * 1e6 for kind, count in _PASSES.items()}
    host = _DISPATCH_MS[0] + _DISPATCH_MS[1] * layers + _LAUNCH_MS * (_LAUNCHES[0] + _LAUNCHES[1] * layers)
    return Step(parameters, flop, times["eager"], times["fused"], max(1e3 * host, times["eager"]))


def _product_flop(rows: float, inputs: int, outputs: int) -> float:
    return 3 * 2 * rows * inputs * outputs


def _product_s(rows: float, inputs: int, outputs: int) -> float:
    """Forward, and backward of input and weight: three products that move the same three matrices."""
    moved = 2 * (rows * (inputs + outputs) + inputs * outputs)
    return 3 * max(2 * rows * inputs * outputs / (PRODUCTS * PEAK), moved / BANDWIDTH)


def scored_mean(task: Task) -> float:
    """Mean number of positions per string that enter the loss; all positions if the task says so."""
    scored = task.scored_positions()
    if scored is None:
        return task.length
    if not hasattr(task, "laws"):
        return scored
    laws = task.laws()
    return 1 + (task.length // 2 - 2) * sum(read for _, read, _ in laws) / len(laws)


def needed_flop(case: Case) -> float:
    """FLOP that the loss needs in one replicate's step. Raises ValueError for a model without a count here."""
    model, task = case.model, case.task
    scored = scored_mean(task)
    if isinstance(model, Transformer):
        return transformer(model, task.vocabulary, task.length, case.batch, scored).flop
    if isinstance(model, LSTM):
        tokens = case.batch * task.length
        # the input half of the first layer's gates is a product with V rows
        gates = 3 * 2 * tokens * 4 * model.width**2 * (2 * model.layers - 1)
        return gates + 3 * 2 * model.width * task.vocabulary * case.batch * scored
    if isinstance(model, MLP):
        hidden = (model.layers - 1) * model.width**2 + model.width * 2
        # of the first layer no gradient of the input
        return 2 * case.batch * (2 * task.length * model.width + 3 * hidden)
    raise ValueError(f"no count of operations for {type(model).__name__}")


def needed_step(case: Case) -> Step | None:
    """The modelled step of a case with needed positions alone; None for models other than transformers."""
    if not isinstance(case.model, Transformer):
        return None
    task = case.task
    return transformer(case.model, task.vocabulary, task.length, case.batch, scored_mean(task))


def seconds(flop_per_step: float, steps: int = 10_000, utilisation: float = 1.0) -> float:
    """Seconds of a training at a share of the peak."""
    return flop_per_step * steps / (PEAK * utilisation)
