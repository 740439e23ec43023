"""The studies of automata, planned once."""

import pytest

from tests.results.claims.planned_rows import planned

FEWER = {"a1": ["replicates=10"], "depth_by_length": ["replicates=5"]}  # planning thousands takes seconds


@pytest.fixture(scope="session")
def plans():
    """Manifests by study, planned once."""
    made = {}

    def get(name):
        if name not in made:
            made[name] = planned("length_generalization", name, overrides=FEWER.get(name, []))
        return made[name]

    return get
