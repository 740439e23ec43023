"""Speed of training and scoring packs, compared with one replicate per process and with other people's code."""
