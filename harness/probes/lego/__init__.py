PROBES = {
    "concentration": "harness.probes.lego.concentration:CONCENTRATION",
}
