"""What the paper shows, in a sentence or two for each figure that a study repeats, by the study's `source`."""

PAPER = "fflm"
SHOWS = {
    (PAPER, "F1"): (
        "Transformers of many depths, widths and numbers of heads (figures 3.24 and 3.27): most never stop erring on "
        "rare strings, and shallow ones often do not converge. No number is printed."
    ),
    (PAPER, "F2"): (
        "The baseline of 500 seeds (figure 3.25) reads its training distribution almost without error and errs on "
        "sparse and on dense strings, from seed to seed by orders of magnitude. No quantile is printed; LSTMs made"
        " no error in 100 of 100 replicates."
    ),
    (PAPER, "F4"): "An LSTM of 133 thousand parameters made no error in 100 of 100 replicates (section 3.5.6.2).",
    (PAPER, "F8"): (
        "Trained on a mixture with rare strings, 6 of 25 replicates made no detected error on any set (section 3.5.4.1)."
    ),
    (PAPER, "F9"): (
        "More data and more steps lower the sparse error and raise the dense one; larger models show no trend "
        "(figures 3.25 and 3.30). No number is printed."
    ),
    (PAPER, "F10"): (
        "Embedding dropout of 0.5 lowers the sparse error by two orders of magnitude; no regulariser removes all "
        "errors (figure 3.31)."
    ),
    (PAPER, "F14"): (
        "Of 10,625 transformers almost none improves on the baseline on both sparse and dense strings, unless it "
        "has seen rare strings (figure 3.25)."
    ),
    (PAPER, "1.3"): (
        "Trained on every next token, models converge a little more slowly in distribution and extrapolate as badly"
        " (figure 3.28). No number is printed, so the figure cannot be redrawn."
    ),
    (PAPER, "F3"): (
        "Of 5 data seeds and 5 model seeds in all pairs, both matter, and neither ranks above the other (figure 3.28). No"
        " number is printed, so the figure cannot be redrawn."
    ),
    (PAPER, "F11"): (
        "Positions that are not trained lower the dense error and have no clear effect on the sparse one (figure 3.32)."
        " No number is printed, so the figure cannot be redrawn."
    ),
    (PAPER, "F12"): (
        "No choice of learning rate and betas improves on the baseline significantly (section 3.5.6.4). No number is printed."
    ),
    (PAPER, "F13"): (
        "Penalties that sharpen attention lower the errors by about one order of magnitude, never to zero (figure 3.32)."
        " No number is printed, so the figure cannot be redrawn."
    ),
    (PAPER, "F15"): (
        "Small models of the flip-flop automaton attend to the wrong symbol at late positions, and end in bad minima far"
        " more often where half of the inputs write than where a tenth do (figures 3.26 and 3.33 to 3.38). No number is"
        " printed, so the figure cannot be redrawn."
    ),
    (PAPER, "F16"): (
        "The conclusions stay the same in preliminary runs with more data symbols. No number or figure is printed."
    ),
    (PAPER, "T0"): (
        "The thesis derives that a model which sees only the last n tokens guesses where the latest write or read lies"
        " further back: on most reads of sparse strings, and on few of dense ones. It trains no such model."
    ),
}
