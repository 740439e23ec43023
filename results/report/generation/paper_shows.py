"""What the thesis shows, in a sentence or two for each section that a study repeats, by the study's `source`."""

PAPER = "verified_generation"
SHOWS = {
    (PAPER, "section 3.1"): (
        "Where one string alone is valid, rejecting whole strings costs H·2ᴴ queries of the generator and rejecting"
        " tokens 2H; the latter prefers some strings to others (propositions 3.1.1 and 3.1.2). The section proves this"
        " without an experiment, so there is no figure to redraw."
    ),
    (PAPER, "section 3.2.1"): (
        "A verifier trained on a generator's errors lowers them from 240 to 179 of 10,000 completions with nucleus 0.9,"
        " and from 462 to 200 without (table 3.3); the larger the quota and the stride, the more completions end well"
        " (table 3.2)."
    ),
    (PAPER, "section 3.3"): (
        "The errors of a wrong value add up over a string where a sampler cannot step back, and hardly do for the walk"
        " VGB, which spends a share of its time at whole strings that falls like 1/H (section 3.3). The section prints no"
        " number, so there is no figure to redraw."
    ),
}
