PROBES = {
    "boundaries": "harness.probes.automata.boundaries:BOUNDARIES",
}
