"""What a job wrote about itself ends no command of others, fills no memory, acts on no terminal."""

from __future__ import annotations

import functools
import gzip
import json
import math
import os
import resource
import struct
import time
import zlib
from collections.abc import Callable

import pytest
from typer.testing import CliRunner

from localgcp.runner.gcsfuse import storage_client
from tests.unit.localcloud.conftest import PROJECT, Cloud
from tests.unit.vt.jobs import submitting
from tests.unit.vt.jobs.event_files import event, file, part, record, scalar
from tests.unit.vt.jobs.measured_jobs import cloud, vt
from vertex_training_cli.cli import app
from vertex_training_cli.jobs import objects, scalars
from vertex_training_cli.jobs.compare import curves
from vertex_training_cli.jobs.metrics import MOST_NAMES, columns, numbers
from vertex_training_cli.jobs.objects import MOST_BYTES, Objects

__all__ = ["cloud", "vt"]
#: Metrics that no command can print as numbers.
METRICS = {
    "deep lists": b"[" * 100_000,
    "deep objects": b'{"a":' * 100_000,
    "an integer larger than any float": b'{"loss": ' + b"9" * 4000 + b"}",
    "a compressed file that is cut short": gzip.compress(b"{}")[:9] + b"x",
}
HISTORIES = {
    "a field that is too long": b"epoch,loss\n1," + b"9" * 200_000,
    "a quote that never ends": b'epoch,loss\n1,"' + b"9\n" * 100_000,
    "values further apart than any float": b"epoch,loss\n1,-1e308\n2,1e308\n",
    "values closer than any half": b"epoch,loss\n1,0\n2,5e-324\n",
}
GOOD = record(event(1, scalar("good", 0.5)))
NESTED = functools.reduce(lambda inner, _: part(1, inner), range(5000), b"")
DAMAGED = "damaged records are left out"
#: Event files with one good record; what is said of the rest.
EVENT_FILES = {
    "nothing but a head": (GOOD[:12], ""),
    "a last record that is cut short": (GOOD + GOOD[:-1], ""),
    "a last head that is cut short": (GOOD + GOOD[:5], ""),
    "a wrong checksum of the content": (GOOD[:-1] + b"x" + GOOD, DAMAGED),
    "a wrong checksum of the length": (GOOD[:11] + b"x" + GOOD[12:] + GOOD, DAMAGED),
    "a length beyond any file": (GOOD + b"\xff" * 12 + b"x" * 64 + GOOD, DAMAGED),
    "no records": (b"\x01\0\0\0\0\0\0\0" * 1000 + GOOD, DAMAGED),
    "an empty record": (record(b"") + GOOD, ""),
    "a number that never ends": (record(b"\x10" + b"\xff" * 100) + GOOD, DAMAGED),
    "a number that is cut short": (record(b"\x10\xff") + GOOD, DAMAGED),
    "a field longer than its message": (record(b"\x2a\xff\xff\xff\x7f") + GOOD, DAMAGED),
    "groups within groups": (record(b"\x2b" * 100_000) + GOOD, DAMAGED),
    "messages within messages": (record(event(1, part(8, NESTED))) + GOOD, ""),
    "a scalar without a tag": (record(event(1, b"\x15\0\0\0")) + GOOD, DAMAGED),
}


def test_a_head_of_many_columns_above_many_lines_takes_no_longer_than_its_bytes() -> None:
    head = ",".join(f"c{number:x}" for number in range(20_000))
    began = time.process_time()
    found = columns(f"{head}\n".encode() + b"0,1\n" * 99_000)
    assert list(found) == ["c1"]
    assert time.process_time() - began < 10


def test_of_very_many_names_the_first_are_shown() -> None:
    names = [f"m{number}" for number in range(100_000)]
    head = ",".join(["step", *names]).encode() + b"\n1" + b",0.5" * len(names)
    assert list(columns(head)) == list(numbers(dict.fromkeys(names, 0.5))) == names[:MOST_NAMES]


def put(name: str, content: bytes, encoding: str | None = None) -> None:
    blob = storage_client(os.environ["STORAGE_EMULATOR_HOST"]).bucket("out").blob(name)
    blob.content_encoding = encoding
    blob.upload_from_string(content)


@pytest.mark.parametrize("content", METRICS.values(), ids=METRICS)
def test_wrong_metrics_leave_those_of_other_jobs(content: bytes, vt: Callable[..., str]) -> None:
    put("b/metrics.json", content)
    listed = json.loads(vt("list", "--metrics", "--format", "json"))
    assert {each["job"]: each["metrics"] for each in listed} == {"a": {"loss": 0.25}, "b": {}}
    vt("show", "b")
    assert "0.25" in vt("compare", "a", "b")


@pytest.mark.parametrize("content", HISTORIES.values(), ids=HISTORIES)
def test_wrong_history_leaves_that_of_other_job(content: bytes, vt: Callable[..., str]) -> None:
    put("b/history.csv", content)
    assert "1 → 0.25" in vt("compare", "a", "b")
    assert curves([columns(content).get("loss", [])])


def test_object_that_unpacks_to_a_large_one_is_read_in_bounds(vt: Callable[..., str]) -> None:
    packer = zlib.compressobj(wbits=31)
    bomb = b"".join(packer.compress(b" " * (1 << 20)) for _ in range(300)) + packer.flush()
    put("b/metrics.json", bomb, "gzip")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert len(Objects(PROJECT).nearest("gs://out/b", "metrics.json")) == MOST_BYTES
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < (100 << 10)


@pytest.mark.parametrize("encoding", ["gzip", None])
def test_metrics_are_read_compressed_as_plain(encoding: str | None, vt: Callable[..., str]) -> None:
    text = b'{"loss": 0.125}'
    put("b/metrics.json", gzip.compress(text) if encoding else text, encoding)
    assert "0.125" in vt("show", "b")
    put("b/metrics.json", b"")
    assert "0.125" not in vt("show", "b")


def test_a_large_object_is_read_in_bounds(vt: Callable[..., str]) -> None:
    put("b/metrics.json", b"\n" * (MOST_BYTES + 5))
    assert len(Objects(PROJECT).nearest("gs://out/b", "metrics.json")) == MOST_BYTES


@pytest.mark.parametrize(("content", "said"), EVENT_FILES.values(), ids=EVENT_FILES)
def test_what_is_damaged_in_an_event_file_is_said_in_one_line_and_the_rest_is_read(
    content: bytes, said: str, vt: Callable[..., str]
) -> None:
    put("b/logs/events.out.tfevents.1", content)
    wanted = {"good": 0.5} if GOOD in content else {}
    listed = json.loads(vt("list", "--metrics", "--format", "json"))
    assert {each["job"]: each["metrics"] for each in listed} == {"a": {"loss": 0.25}, "b": wanted}
    assert _read()[1] == ([said] if said else [])


def test_what_is_not_read_of_event_files_is_one_line(cloud: Cloud, vt: Callable[..., str]) -> None:
    put("b/logs/events.out.tfevents.1", b"x" * 100 + GOOD)
    words = ["jobs", "compare", "a", "b", "--stack", "local"]  # reads metrics and curves
    told = CliRunner().invoke(app, words).stderr
    assert told.splitlines() == [f"vt: TensorBoard logs of b: {DAMAGED}"]


def test_the_newest_values_of_a_long_event_file_are_read_in_bounds(vt: Callable[..., str]) -> None:
    image = record(event(0, part(1, b"image") + part(4, b"\1\0\0\0\0\0\0\0" * 1000)))
    last = file(*(event(step, scalar("loss", step)) for step in range(9)))
    put("b/logs/events.out.tfevents.2", GOOD + image * (MOST_BYTES // len(image) + 1) + last)
    put("b/logs/events.out.tfevents.1", GOOD)  # the newest
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found, unread = _read()
    assert found == {"good": [0.5], "loss": [float(step) for step in range(9)]}
    assert unread == ["only the newest 8 MiB or 32 files are read"]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < (100 << 10)


def test_many_files_are_bounded(vt: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    tags = [scalar(str(tag), 1) for tag in range(scalars.MOST_TAGS + 1)]
    for number in range(scalars.MOST_FILES + 1):
        put(f"b/logs/{number}/events.out.tfevents.1", record(event(1, *tags)))
    monkeypatch.setitem(objects._ONE_PAGE, "page_size", 20)
    found, unread = _read()
    assert len(found) == scalars.MOST_TAGS
    assert unread == ["only the first 1000 objects are listed", "only 1000 tags are kept"]
    monkeypatch.setitem(objects._ONE_PAGE, "page_size", 1000)
    assert _read()[1][0] == "only the newest 8 MiB or 32 files are read"


def _read() -> tuple[dict[str, list[float]], list[str]]:
    bucket, folder = Objects(PROJECT), "gs://out/b/logs/"
    files, more = bucket.files(folder, scalars.EVENTS)
    return scalars.read(bucket, folder, files, more=more)


def test_scalars_act_on_no_terminal_or_output(vt: Callable[..., str]) -> None:
    tag = "x\x1b[2J\x1b]0;t\x07\u202e\nloss [/bold] </title><script>alert(1)</script>"
    values = [math.nan, math.inf, -math.inf, 3e38, -3e38, 0.5]
    steps = [-(1 << 63), -1, 0, 1, (1 << 62), (1 << 63) - 1]
    events = [event(step, scalar(tag, value)) for step, value in zip(steps, values, strict=True)]
    latin = part(1, b"\xff\xfe") + b"\x15" + struct.pack("<f", math.nan)
    put("b/logs/run\n\x1b[2J/events.out.tfevents.1", file(*events, event(1, latin)))
    said = [vt("list", "--metrics"), vt("show", "b"), vt("compare", "a", "b")]
    assert not [char for char in "".join(said) if not char.isprintable() and char != "\n"]
    assert not [line for text in said for line in text.splitlines() if line.startswith("loss [/")]
    [found] = json.loads(vt("compare", "b", "--format", "json"))
    assert [float(value) for value in found["curves"][f"run\n\x1b[2J/{tag}"]][3:] == pytest.approx(
        values[3:]
    )


def test_name_acts_on_no_terminal_and_adds_no_row(vt: Callable[..., str], cloud: Cloud) -> None:
    name = "x\x1b[2J\x1b]0;t\x07\u202e\ntitanic  1  FAILED"
    id_ = submitting.submit_with(cloud, "true", name, {"vt-stack": "local"})
    said = [vt("list", "--all"), vt("show", id_), vt("compare", id_, "a")]
    assert all("\N{REPLACEMENT CHARACTER}[2J" in text for text in said), said
    assert not [char for char in "".join(said) if not char.isprintable() and char != "\n"]
    assert not [line for text in said for line in text.splitlines() if line.startswith("titanic")]
