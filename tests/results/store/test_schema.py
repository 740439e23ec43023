"""The tables' schemas are frozen: a store that was written with one version is read with every later one."""

from results.store.schema import IDENTITY_COLUMNS, SCHEMAS

# written out, not derived: only nullable columns may be appended, at the end of a table
FROZEN = """
replicates
  key: string not null
  stage: int32 not null
  parent_key: string
  parent_step: int64
  condition: string not null
  config: string not null
  init_seed: int64 not null
  data_seed: int64 not null
  status: string not null
  diverged_at: int64
  steps: int64 not null
  samples: int64 not null
  tokens: int64 not null
  parameters: int64 not null
  loss: double not null
  pack: string not null
  pack_size: int32 not null
  slot: int32 not null
  attempt: int32 not null
  started: timestamp[us, tz=UTC] not null
  ended: timestamp[us, tz=UTC] not null
  train_s: double not null
  evaluate_s: double not null
  host: string not null
  device: string not null
  numerics: string not null
  versions: string not null
  git: string
  dirty: bool
  sets: list<item: string> not null
  own_git: string
  own_dirty: bool
  own_wandb: string
evaluations
  key: string not null
  stage: int32 not null
  pack: string not null
  step: int64 not null
  weights: string not null
  set: string not null
  set_hash: string not null
  length: int64
  metric: string not null
  errors: int64
  count: int64
  sequences: int64 not null
  sequences_wrong: int64
  errors_sq: int64
  errors_x_count: int64
  count_sq: int64
  value: double
  kind: string
profiles
  key: string not null
  stage: int32 not null
  pack: string not null
  step: int64 not null
  set: string not null
  set_hash: string not null
  axis: string not null
  lo: int64 not null
  hi: int64 not null
  errors: int64 not null
  count: int64 not null
curves
  key: string not null
  stage: int32 not null
  pack: string not null
  step: int64 not null
  metric: string not null
  value: double not null
probes
  key: string not null
  stage: int32 not null
  pack: string not null
  step: int64 not null
  probe: string not null
  layer: int32
  head: int32
  item: string
  value: double not null
  other_key: string
failures
  pack: string not null
  attempt: int32 not null
  keys: list<item: string> not null
  stage: int32 not null
  step: int64
  kind: string not null
  exception: string not null
  traceback: string not null
  at: timestamp[us, tz=UTC] not null
"""


def test_schemas_are_what_they_were_when_the_first_study_was_committed():
    lines = []
    for table, schema in SCHEMAS.items():
        lines.append(table)
        lines.extend(f"  {field.name}: {field.type}{'' if field.nullable else ' not null'}" for field in schema)
    assert "\n".join(lines) == FROZEN.strip()


def test_the_identity_columns_are_those_before_the_provenance():
    expected = "key stage parent_key parent_step condition config init_seed data_seed status diverged_at steps samples tokens "
    assert (expected + "parameters loss").split() == IDENTITY_COLUMNS


def test_every_table_but_failures_can_be_joined_on_the_commit():
    for table, schema in SCHEMAS.items():
        if table != "failures":
            assert {"key", "stage", "pack"} <= set(schema.names), table
