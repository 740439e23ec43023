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
        "All inputs of the support correlate with the teacher's answer during its transition, and no other input "
        "does (figure 4.15)."
    ),
    (PAPER, "P9"): "Attention on the support rises with accuracy (figure 4.14).",
    (PAPER, "P13"): (
        "After 8,000 steps students are right on 95.7 % by progressive distillation, 92.8 % by one-shot "
        "distillation and 92.6 % by labels (figure 4.4); the teacher on 97.0 %."
    ),
    (PAPER, "P14"): "The best first checkpoint is that of step 1,000, with 92.5 %; the last one gives 87.0 % (figure 4.7).",
}
