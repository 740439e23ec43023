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
    (PAPER, "figure 4"): (
        "The loss of an attention-only transformer falls from 1.098 to 1.064 by step 20, slowly to 1.03 by step 300 and"
        " at once to 0.98 by step 370, with one-hot embeddings (figure 4, one seed)."
    ),
    (PAPER, "figure 7"): (
        "A transformer with MLPs stays at 1.603, the unigram's loss, to step 1,700, and reaches 1.540 by step 4,000"
        " without a second plateau; its gradient peaks at the jump (figure 7, one seed)."
    ),
    (PAPER, "figures 1 and 5"): (
        "In 5 of 5 runs a head attends to lag 1 before any attends to lag 2 (figure 5, n = 3); the loss of a 4-gram model"
        " has a plateau for each order (figure 1)."
    ),
    (PAPER, "section 5"): (
        "With languages that differ more the stages are the same: the loss falls to the unigram's, then the bigram's,"
        " then towards the trigram's (section 5, one seed of figure 3)."
    ),
    (PAPER, "section 7"): (
        "The paper shows one training per figure, and no time on a plateau over seeds, so there is nothing to redraw."
    ),
    (PAPER, "theorem 4.2"): (
        "At the weights of a k-gram estimator the gradient is near zero: it grows like √c with the scale c, times an"
        " error of the estimator that falls with the length of the strings (theorem 4.2, without an experiment)."
    ),
}
