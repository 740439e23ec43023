"""Which places of a string a perturbation leaves as they are."""

from torch import Tensor

from harness.draw import Draw

MASKINGS = ("rgrand", "bernoulli")
COUNT, PLACES = 0, 1  # sites of the draws


def kept(n: int, count: int, rate: float, masking: str, draw: Draw, base: int) -> Tensor:
    """Which of n places are left as they are, bool [N, n].

    masking: rgrand, the paper's code: M places without replacement, M uniform in 1 … max(1, rate · n); bernoulli, its text: each place
    is replaced with probability `rate`.
    """
    if masking == "bernoulli":
        return draw.uniform((count, n), base + PLACES)[0] >= rate
    most = draw.integers(max(1, int(rate * n)), (count, 1), base + COUNT)[0] + 1
    return draw.permutation(n, (count,), base + PLACES)[0] >= most  # ranks below M are at M random places
