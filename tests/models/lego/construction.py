"""The feed-forward that Huang et al. 2025 prove to be learned (theorems B.1 and C.1), written down, and attention that is concentrated."""

import torch

from tasks.lego.lego import ACTION, INPUT, OUTPUT, VALUE, VARIABLE

BALANCE = 10.0  # B: half of a matching neuron's weights on an action and a value


def load(model, task, concentration, gap=0.0):
    """Load a pack of `lego_theory` with the solution of `task`: diagonals of Q `concentration` + and - gap/2, nothing else in Q.

    One neuron a (source value, target value) pair, shared by the actions that lead there: balanced where there is one such action
    (theorem B.1: 1 : 1), otherwise n_y : 1 (theorem C.1). Slot 4 copies slot 1 of the predicate; slots 1 to 3 say the blank.
    """
    size, neurons = model.vocabulary, model.config.neurons
    action, values = task.action, task.action.values
    assert neurons >= values
    variables = slice(1, task.first_action)
    actions, numbers = (
        slice(start, start + count) for start, count in ((task.first_action, action.actions), (task.first_value, values))
    )
    weight = torch.zeros(5, size, 5, size, neurons)  # slot and token read, slot and token answered, neuron
    for target in range(values):
        answer = weight[:, :, VALUE, task.first_value + target]
        for value in range(values):
            fiber = (action.table[:, value] == target).nonzero()[:, 0] + task.first_action  # actions that lead there
            ratio = 1 if action.actions == values else values
            on_action, on_value = (1.0, 1.0) if ratio == 1 else (2.0, 2.0 / ratio)
            answer[ACTION, actions, value] = -BALANCE * (1.0 if ratio == 1 else 2.0 / ratio)
            answer[ACTION, fiber, value] = BALANCE * on_action
            answer[VALUE, numbers, value] = -BALANCE * (1.0 if ratio == 1 else 2.0)
            answer[VALUE, task.first_value + value, value] = BALANCE * on_value
    for name in range(1, task.first_action):
        weight[OUTPUT, name, VARIABLE, name, 0] = 2 * BALANCE
    for slot in (OUTPUT, ACTION, INPUT):
        weight[VARIABLE, variables, slot, 0, 0] = 2 * BALANCE
    with torch.no_grad():
        model.feed_forward.copy_(weight.view(5 * size, -1))
        diagonal = torch.zeros(size)
        diagonal[variables] = 1
        model.to_input.copy_(torch.diag(diagonal * (concentration + gap / 2)))
        model.to_answered.copy_(torch.diag(diagonal * (concentration - gap / 2)))
    return model
