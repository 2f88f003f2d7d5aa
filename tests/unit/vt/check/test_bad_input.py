"""Whatever the bytes: findings in every format, never a traceback."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from vertex_training_cli.check import checking, machine_reports, text_report
from vertex_training_cli.check.report import FileReport

#: Pieces of job files, and of what goes wrong with them.
WORDS = (
    "workerPoolSpecs: jobSpec: replicaCount: x: - { } [ ] &a *a <<: ? !! ' \" >\n | # : --- "
    "${buckets.data} ${ 0x1F 1e3 no ~ 22:22 \x00 \ufeff é \x1b[2J ::error::"
)
SPACES = (" ", "  ", "\n", "\n  ", "\t", "\r", "\u2028", "\n---\n")
PIECES = st.sampled_from([*WORDS.split(" "), *SPACES])
TEXTS = st.lists(PIECES | st.text(max_size=5), max_size=40).map("".join)
BYTES = st.binary(max_size=200) | TEXTS.map(lambda text: text.encode("utf-8", "surrogatepass"))
HEAVY = {
    "empty": b"",
    "binary": bytes(range(256)) * 100,
    "10 MB of one line": b"a: " + b"x" * 10_000_000,
    "10 MB of lines": b"a: 1\n" * 2_000_000,
    "deep nesting": b"[" * 200_000,
    "deep blocks": b"".join(b" " * n + b"a:\n" for n in range(1000)),
    "a bomb": b"a: &a [x,x,x,x,x,x,x,x,x]\n"
    + b"".join(
        b"%c: &%c [%s]\n" % (n, n, b",".join([b"*%c" % (n - 1)] * 9)) for n in range(98, 110)
    ),
    "a cycle": b"a: &a [*a]\n",
    "a merge cycle": b"a: &a\n  <<: *a\n",
    "tabs": b"a:\n\tb: 1\n",
    "several documents": b"a: 1\n---\nb: 2\n",
    "equal keys": b"a: 1\n" * 90_000,
    "many mistakes": b"".join(b"k%d: 1\n" % n for n in range(15_000)),
    "utf-16": "workerPoolSpecs: []\n".encode("utf-16"),
}


def judged(tmp_path, data) -> FileReport:
    file = tmp_path / "job.yaml"
    file.write_bytes(data)
    return checking.check_without_stack(str(file))


def told_in_every_format(report):
    lines = list(text_report.lines([report], color=False))
    assert all(line.isprintable() for line in lines)
    assert all("\n" not in command for command in machine_reports.as_workflow_commands([report]))
    assert len(json.loads(machine_reports.as_sarif([report]))["runs"][0]["results"]) == len(
        report.findings
    )
    rows = json.loads(machine_reports.as_json([report]))["files"][0]["findings"]
    for row in rows:
        assert row["line"] >= 1
        assert row["endColumn"] > row["column"] >= 1
        assert row["rule"]


@given(data=BYTES)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_any_bytes_are_judged_and_told(tmp_path, data):
    told_in_every_format(judged(tmp_path, data))


@pytest.mark.parametrize("name", HEAVY)
def test_heavy_input_is_refused_plainly(tmp_path, name):
    report = judged(tmp_path, HEAVY[name])
    assert report.count("error") >= 1
    told_in_every_format(report)
