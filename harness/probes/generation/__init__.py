PROBES = {"backtracking": "harness.probes.generation.backtracking:BACKTRACKING"}
