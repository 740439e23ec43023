"""What the paper shows, in a sentence or two for each figure that a study repeats, by the study's `source`."""

PAPER = "liu"
SHOWS = {
    (PAPER, "A1"): (
        "Every automaton is right on over 99 % of the tokens at some depth, the best of 20 replicates: Dyck with 1"
        " layer, C2 with 2, A5 with 7, S5 with 13 (figure 3.15)."
    ),
    (PAPER, "A4"): (
        "Where the label shows a part of the state, the best of 25 replicates is right on 99.6 % of the tokens for"
        " S5, on 99.9 % for C4 and on 100 % for Dyck, Grid9, D8 and (abab)*; LSTMs on 100 % (figure 3.18)."
    ),
    (PAPER, "A5"): (
        "With few revealed labels the transformer holds on C2 and falls on S5, and the LSTM stays perfect on both "
        "(figure 3.19). No number is printed."
    ),
    (PAPER, "A6"): (
        "The transformer's accuracy on parity drops as ones become rarer or more frequent than in training; the "
        "LSTM, and a scratchpad with a recency bias, stay perfect (figure 3.20). No number is printed."
    ),
    (PAPER, "A7"): (
        "The LSTM, and a scratchpad with a recency bias, stay perfect beyond the training length of 40; the "
        "transformer falls sharply, and less so with shifted or no positions (figure 3.21). No number is printed."
    ),
    (PAPER, "A8"): (
        "On Grid9 sinusoidal and linear positions are equal at the training length, and sinusoidal ones much worse"
        " at twice that length (figure 3.22). No number is printed."
    ),
    (PAPER, "A2"): (
        "Trainings of one setting differ much from seed to seed, and accuracy falls again in the middle of some, for C2"
        " and S5 (figure 3.5). No number is printed, so the figure cannot be redrawn."
    ),
    (PAPER, "A3"): (
        "On a gridworld a head of the first layer is nearly uniform, and heads of the fourth attend to the last visit of"
        " a boundary and to nothing before it (figures 3.6 and 3.17). No number is printed, so the figure cannot be"
        " redrawn."
    ),
}
