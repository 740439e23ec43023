"""W&B's offline files, written by hand, so that a test need not wait for W&B's own processes."""

import json
import zlib

from wandb.proto import wandb_internal_pb2


def offline_log(*records):
    """A file as W&B writes it, of records in the order given: parts of blocks of 32 KiB, each with its checksum."""
    log = b":W&B\xe1\xbe\x00"
    for record in records:
        parts, at = [], len(log)
        while record or not parts:
            left = 2**15 - at % 2**15
            if left < 7:
                parts.append((b"\0" * left, None))
                at += left
                continue
            part, record = record[: left - 7], record[left - 7 :]
            parts.append((part, len(parts)))
            at += 7 + len(part)
        whole = [part for part in parts if part[1] is not None]
        for part, number in parts:
            if number is None:
                log += part
                continue
            first, last = (part, number) == whole[0], (part, number) == whole[-1]
            kind = bytes([1 if first and last else 2 if first else 4 if last else 3])
            log += zlib.crc32(kind + part).to_bytes(4, "little") + len(part).to_bytes(2, "little") + kind + part
    return log


def run_record(**config):
    record = wandb_internal_pb2.Record()
    for name, value in config.items():
        record.run.config.update.add(key=name, value_json=json.dumps(value))
    return record.SerializeToString()


def log_of_run(*history, summary=None, status=0):
    """The file of a run that has logged these mappings; status: None where it has not ended."""
    records = [wandb_internal_pb2.Record() for _ in history]
    for number, (record, values) in enumerate(zip(records, history, strict=True)):
        for name, value in ({"_step": number} | values).items():
            record.history.item.add(key=name, value_json=json.dumps(value))
    last = wandb_internal_pb2.Record()
    for name, value in (summary or {}).items():
        last.summary.update.add(key=name, value_json=json.dumps(value))
    ending = wandb_internal_pb2.Record()
    if status is not None:
        ending.exit.exit_code = status
    return offline_log(*(record.SerializeToString() for record in (*records, last, ending)))
