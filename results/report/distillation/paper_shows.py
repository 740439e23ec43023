"""What the paper shows, in a sentence or two for each figure that a study repeats, by the study's `source`."""

PAPER = "progressive_distillation"
SHOWS = {
    (PAPER, "P1"): (
        "The teacher and the progressive student leave chance at about 10 million steps and are right by 11 "
        "million; the one-shot student stays at chance to 20 million, the student of labels to 18 million (figure "
        "4.4)."
    ),
    (PAPER, "P2"): (
        "A student of the checkpoint in the middle of the transition learns; one of the checkpoint before it or "
        "after it does not (figure 4.5). The teacher is right on 50, 75 and 100 % there."
    ),
    (PAPER, "P7"): (
        "Inputs of the support correlate far more with the teacher's answer during its transition than other inputs "
        "do (figure 4.15)."
    ),
    (PAPER, "P9"): "Attention on the support rises with accuracy (figure 4.14).",
    (PAPER, "P13"): (
        "After 8,000 steps students are right on 95.7 % by progressive distillation, 92.8 % by one-shot "
        "distillation and 92.6 % by labels (figure 4.4); the teacher on 97.0 %."
    ),
    (PAPER, "P14"): "The best first checkpoint is that of step 1,000, with 92.5 %; the last one gives 87.0 % (figure 4.7).",
    (PAPER, "P3"): (
        "For a teacher with a larger learning rate, correlations of degree 1 do not tell the support from the other"
        " inputs, and those of degree 2 and 3 do; the checkpoint inside the transition is the best one still (figure"
        " 4.12). No number is printed, so the figure cannot be redrawn."
    ),
    (PAPER, "P4"): (
        "Wider perceptrons, and transformers with more heads, learn the parity sooner (figure 4.10, 5 runs each). No"
        " number is printed, so the figure cannot be redrawn."
    ),
    (PAPER, "P5"): (
        "The teacher of 32 heads learns the parity after 3.2 to 3.7 million samples and the progressive student of 4"
        " heads after 3.4 to 3.6 million; students of the last checkpoint or of labels stay at chance to 8 million (figure"
        " 4.4, read by eye)."
    ),
    (PAPER, "P6"): (
        "More heads find the support of a parity sooner, whatever is held fixed: 8 dimensions a head, a width of 256, or"
        " both with the heads averaged (figure 4.13). No number is printed, so the figure cannot be redrawn."
    ),
    (PAPER, "P8"): (
        "A student of two checkpoints, one inside the transition and the last, learns far sooner than a student of labels"
        " or of the last checkpoint; a temperature of 0.01 or less acts like the most probable class (figures 4.16 and"
        " 4.17). No number is printed, so the figures cannot be redrawn."
    ),
    (PAPER, "P10"): (
        "The progressive student learns hierarchical parity as fast as its teacher and gets all strings right; the one-"
        " shot student is slower (figure 4.18). No number is printed, so the figure cannot be redrawn."
    ),
    (PAPER, "P11"): (
        "The teacher's correlations with the inputs of different levels of the tree peak at different steps (figure"
        " 4.20). No number is printed, so the figure cannot be redrawn."
    ),
    (PAPER, "P12"): (
        "Two checkpoints inside the transition teach a student to be right on all strings. A pair with the checkpoint of"
        " 6 million steps, after the transition, does not, nor does a single one (figures 4.21 and 4.22). The curves have"
        " no printed numbers, so they cannot be redrawn."
    ),
    (PAPER, "P15"): (
        "Progressive students rest less on the tokens nearby, and probes read non-terminals near the root off them more"
        " often, than off one-shot students and students of labels (figure 4.8). No number is printed, so the figure"
        " cannot be redrawn."
    ),
    (PAPER, "P16"): (
        "At a temperature of 1e-4 progressive students beat one-shot students at all mask rates, by less the longer they"
        " train, and hardly on cfg3i, where students end at 75 %; at a temperature of 1 they can be worse with 16 heads"
        " (figures 4.26 to 4.30). Curves and bars have no printed numbers, so they cannot be redrawn."
    ),
    (PAPER, "P17"): (
        "After 24, 60 and 120 thousand steps on Wikipedia and books, progressive students are right on 40.3, 48.2 and"
        " 51.5 % of the masked tokens, one-shot students on 38.0, 47.9 and 50.8 %, and students of labels on 36.1, 46.5"
        " and 50.0 % (figure 4.9, read by eye)."
    ),
    (PAPER, "R3"): (
        "With a checkpoint inside the transition a student of (d, k)-parity needs about 2ᵏ·d² samples, and with the last"
        " checkpoint alone at least about dᵏ⁻¹ (theorems 22 and 23). The thesis proves this without an experiment, so"
        " there is no figure to redraw."
    ),
    (PAPER, "R7"): (
        "Progressive distillation of GPT-2 on cfg3f beats one-shot distillation at all lengths, by less the longer the"
        " student trains and the more tokens are scored (figures 4.33 to 4.35). The curves have no printed numbers, so"
        " they cannot be redrawn."
    ),
}
