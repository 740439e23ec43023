PROBES = {
    "balance": "harness.probes.dyck.balance:BALANCE",
    "stack": "harness.probes.dyck.stack:STACK",
    "variation": "harness.probes.dyck.variation:VARIATION",
}
