PROBES = {
    "balance": "harness.probes.dyck.balance:BALANCE",
    "map": "harness.probes.dyck.map:MAP",
    "stack": "harness.probes.dyck.stack:STACK",
    "variation": "harness.probes.dyck.variation:VARIATION",
}
