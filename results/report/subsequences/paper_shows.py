"""What the paper shows, in a sentence or two for each prediction that a study tests, by the study's `source`."""

PAPER = "subsequence_association_tracing"
SHOWS = {
    (PAPER, "prediction 1"): (
        "A transformer sees a subsequence of η tokens with a number of layers in proportion to log₂ η (theorem 2.4). The"
        " paper proves this and trains nothing, so there is no figure to redraw."
    ),
    (PAPER, "prediction 2"): (
        "The pairs that a transformer holds grow exponentially with its width until its inner width binds (lemma A.3 and"
        " theorem A.6). The paper proves this and trains nothing, so there is no figure to redraw."
    ),
    (PAPER, "predictions 3 and 4"): (
        "What a training step changes in a pair is bounded by the pair's frequency times the gap to its probability, so"
        " rare pairs take longer (proposition 2.5). The paper proves this and trains nothing, so there is no figure to"
        " redraw."
    ),
    (PAPER, "prediction 5"): (
        "The logarithm of the probability of an answer is a sum over subsequences where these are independent"
        " (proposition 2.3, without an experiment). Subsequences that the search finds bring the wrong answer of OLMo-7B"
        " back in 42.5 % of the fresh strings, those of the best other method in 27.5 % (table 2)."
    ),
    (PAPER, "E3, prediction 6"): (
        "The traced pairs of OLMo-7B bring their answer back the more often, the more often the training corpus has it"
        " there: over pairs the correlation is 0.72 (figure 6). Its points are not printed, so the figure cannot be"
        " redrawn."
    ),
}
