PROBES = {
    "attention": "harness.probes.flipflop.attention:ATTENTION",
    "dilution": "harness.probes.flipflop.dilution:DILUTION",
    "drift": "harness.probes.flipflop.drift:DRIFT",
    "heads": "harness.probes.flipflop.heads:HEADS",
}
