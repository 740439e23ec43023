from launch.cli.flipflop.explain import glitches, language_model, trace

EXPLAIN = (glitches, trace, language_model)
