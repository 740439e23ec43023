PROBES = {
    "associations": "harness.probes.subsequences.associations:ASSOCIATIONS",
    "alignment": "harness.probes.subsequences.alignment:ALIGNMENT",
}
