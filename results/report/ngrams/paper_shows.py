"""What the paper shows, in a sentence or two for each figure that a study repeats, by the study's `source`."""

PAPER = "in_context_ngrams"
SHOWS = {
    (PAPER, "figure 1"): (
        "One transformer on in-context 4-grams stays at the losses of the 1-, 2- and 3-gram, one after the other (figure 1)."
    ),
    (PAPER, "figure 3"): (
        "The loss of one transformer falls in steps: to the unigram's, then the bigram's, which it leaves after about 11,600 of "
        "16,384 steps, from 1.6355 to 1.6065 (figure 3)."
    ),
    (PAPER, "figure 6"): (
        "The gradient is small while the loss stays at that of a k-gram, and large while it jumps to the next; one transformer "
        "ends at 1.284 to 1.286 (figure 6)."
    ),
}
