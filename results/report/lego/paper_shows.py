"""What the paper shows, in a sentence or two for each figure that a study repeats, by the study's `source`."""

PAPER = "lego"
SHOWS = {
    (PAPER, "fig1a"): (
        "Trained on chains of 5, models of C6 stay near-perfect to chains of 160; those of S5 fall after a "
        "constant factor (figure 1a). No number is printed."
    ),
    (PAPER, "fig1b"): (
        "Each stage of self-training on S5 extends the length at which answers are right; after the stage of "
        "length 40 they are near-perfect far beyond it (figure 1b). No number is printed."
    ),
}
