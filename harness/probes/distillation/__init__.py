PROBES = {
    "monomials": "harness.probes.distillation.parity:MONOMIALS",
    "support_attention": "harness.probes.distillation.parity:SUPPORT_ATTENTION",
    "ngrams": "harness.probes.distillation.ngrams:NGRAMS",
    "nonterminals": "harness.probes.distillation.nonterminals:NONTERMINALS",
}
