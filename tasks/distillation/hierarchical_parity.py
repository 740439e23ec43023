"""Hierarchical parity: a binary tree of parities of disjoint coordinates leads to one of 2^D classes.

Panigrahi et al. 2025, section 4.2.7.3 of the thesis, figure 4.19. Nodes are numbered as in a heap: 1 is the root, the children of n are
2n (taken where the product of its coordinates is -1) and 2n + 1 (where it is +1); class i is the leaf 2^D + i. Node n holds the
coordinates (n - 1)k … nk - 1, from 0; the others are irrelevant. The class formula that is printed is garbled; this is the figure's tree.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch

from tasks.batch import Batch
from tasks.bits import at_the_end, bits
from tasks.draws import Draw
from tasks.task import Classification, refuse_below


@dataclass(frozen=True)
class HierarchicalParity(Classification):
    """Strings of d signs and the leaf that their parities lead to; +1 is token 0, -1 token 1, and the class is wanted at the last position.

    length: d. depth: D, of the tree. degree: k, the coordinates of each node.
    """

    error: ClassVar[str] = "a string whose most probable class is not the leaf that its parities lead to"
    vocabulary: ClassVar[int] = 2

    length: int = 100
    depth: int = 3
    degree: int = 5

    def __post_init__(self) -> None:
        refuse_below(self, depth=1, degree=1)
        if self.depth > 16:
            raise ValueError(f"task.depth = {self.depth} must be at most 16: there are 2^depth classes")
        if self.nodes * self.degree > self.length:
            raise ValueError(
                f"task.length = {self.length} has no room for the {self.nodes} nodes of task.depth = {self.depth} with task.degree = "
                f"{self.degree} coordinates each: write at least {self.nodes * self.degree}"
            )

    @property
    def nodes(self) -> int:
        """Inner nodes of the tree, 2^D - 1."""
        return 2**self.depth - 1

    @property
    def outputs(self) -> int:
        """Classes, 2^D."""
        return 2**self.depth

    def group(self, node: int) -> tuple[int, ...]:
        """The coordinates of inner node 1 … 2^D - 1, from 0. Raises ValueError for another."""
        if not 1 <= node <= self.nodes:
            raise ValueError(f"there is no inner node {node} in a tree of depth {self.depth}: they are 1 … {self.nodes}")
        return tuple(range((node - 1) * self.degree, node * self.degree))

    def path(self, label: int) -> tuple[int, ...]:
        """The inner nodes from the root to a class. Raises ValueError for a class that is none."""
        if not 0 <= label < self.outputs:
            raise ValueError(f"there is no class {label} in a tree of depth {self.depth}: they are 0 … {self.outputs - 1}")
        return tuple((self.outputs + label) >> up for up in range(self.depth, 0, -1))

    def sample(self, draw: Draw, batch: int) -> Batch:
        """`batch` strings a replicate: inputs, targets [R, B, T] int64, weights [R, B, T], 1 at the last position and 0 elsewhere."""
        inputs = bits(draw, batch, self.length)
        groups = inputs[..., : self.nodes * self.degree].unflatten(-1, (self.nodes, self.degree))
        right = 1 - groups.sum(-1) % 2  # [R, B, nodes]: whether the product is +1
        node = torch.ones(inputs.shape[:2], dtype=torch.int64, device=inputs.device)
        for _ in range(self.depth):
            node = 2 * node + right.gather(-1, node[..., None] - 1)[..., 0]
        return at_the_end(inputs, node - self.outputs)
