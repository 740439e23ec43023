"""How many strings of a pool the stage before labels right, which a self-training stage writes beside its curves."""

import torch

import tasks
from harness.training.self_labels import Annotator

POOL = 700  # more than is answered at once
WRONG = (0, 35)  # of the two replicates


class Told(Annotator):
    """Answers that are true but for the last value of the first strings of each replicate."""

    def _of_pool(self):
        self.first = 0
        return super()._of_pool()

    def _said(self, prompts):
        _, truth = self._sentences(self.asked, prompts.shape[1])
        answers = truth.clone()
        for slot, count in enumerate(WRONG):
            mine = slice(0, max(0, min(answers.shape[1], count - self.first)))
            answers[slot, mine, -1, -1] += 1
        self.first += prompts.shape[1]
        return answers

    def _sentences(self, draw, size):
        self.asked = draw
        return super()._sentences(draw, size)


def test_strings_that_are_labelled_right_throughout_are_counted():
    task = tasks.build("lego", group="C3", length=4, variables=12)
    seeds = torch.tensor([5, 6])
    found = Told(torch.nn.Identity(), [task, task], seeds, POOL, lambda: None).right()
    assert found == [1.0, torch.tensor((POOL - WRONG[1]) / POOL).item()]
