"""Tests that a job's own metrics break no other command, exhaust no memory and control no
terminal.
"""

from __future__ import annotations

import gzip
import json
import os
import resource
import zlib
from collections.abc import Callable

import pytest

from localgcp.runner.gcsfuse import storage_client
from tests.unit.localcloud.conftest import PROJECT, Cloud
from tests.unit.vt.jobs import submitting
from tests.unit.vt.jobs.measured_jobs import cloud, vt
from vertex_training_cli.jobs.metrics import MOST_NAMES, numbers
from vertex_training_cli.jobs.objects import MOST_BYTES, Objects

__all__ = ["cloud", "vt"]
#: Metrics that no command can print as numbers.
METRICS = {
    "deep lists": b"[" * 100_000,
    "deep objects": b'{"a":' * 100_000,
    "an integer larger than any float": b'{"loss": ' + b"9" * 4000 + b"}",
    "a compressed file that is cut short": gzip.compress(b"{}")[:9] + b"x",
}


def test_only_the_first_of_many_metric_names_are_shown() -> None:
    names = [f"m{number}" for number in range(100_000)]
    assert list(numbers(dict.fromkeys(names, 0.5))) == names[:MOST_NAMES]


def put(name: str, content: bytes, encoding: str | None = None) -> None:
    blob = storage_client(os.environ["STORAGE_EMULATOR_HOST"]).bucket("out").blob(name)
    blob.content_encoding = encoding
    blob.upload_from_string(content)


@pytest.mark.parametrize("content", METRICS.values(), ids=METRICS)
def test_invalid_metrics_do_not_hide_metrics_of_other_jobs(
    content: bytes, vt: Callable[..., str]
) -> None:
    put("b/metrics.json", content)
    listed = json.loads(vt("list", "--metrics", "--format", "json"))
    assert {each["job"]: each["metrics"] for each in listed} == {"a": {"loss": 0.25}, "b": {}}
    vt("show", "b")
    assert "0.25" in vt("compare", "a", "b")


def test_decompression_of_metrics_is_bounded(vt: Callable[..., str]) -> None:
    packer = zlib.compressobj(wbits=31)
    bomb = b"".join(packer.compress(b" " * (1 << 20)) for _ in range(300)) + packer.flush()
    put("b/metrics.json", bomb, "gzip")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert len(Objects(PROJECT).nearest("gs://out/b", "metrics.json")) == MOST_BYTES
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < (100 << 10)


@pytest.mark.parametrize("encoding", ["gzip", None])
def test_compressed_metrics_equal_plain_metrics(
    encoding: str | None, vt: Callable[..., str]
) -> None:
    text = b'{"loss": 0.125}'
    put("b/metrics.json", gzip.compress(text) if encoding else text, encoding)
    assert "0.125" in vt("show", "b")
    put("b/metrics.json", b"")
    assert "0.125" not in vt("show", "b")


def test_read_of_a_large_object_is_bounded(vt: Callable[..., str]) -> None:
    put("b/metrics.json", b"\n" * (MOST_BYTES + 5))
    assert len(Objects(PROJECT).nearest("gs://out/b", "metrics.json")) == MOST_BYTES


def test_metric_name_contains_no_terminal_sequence_or_line_break(
    vt: Callable[..., str], cloud: Cloud
) -> None:
    name = "x\x1b[2J\x1b]0;t\x07\u202e\ntitanic  1  FAILED"
    id_ = submitting.submit_with(cloud, "true", name, {"vt-stack": "local"})
    said = [vt("list", "--all"), vt("show", id_), vt("compare", id_, "a")]
    assert all("\N{REPLACEMENT CHARACTER}[2J" in text for text in said), said
    assert not [char for char in "".join(said) if not char.isprintable() and char != "\n"]
    assert not [line for text in said for line in text.splitlines() if line.startswith("titanic")]
