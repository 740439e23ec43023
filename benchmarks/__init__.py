"""How fast packs train and are scored, beside one replicate a process and other people's code."""
