"""Whatever the bytes: findings in every format, never a traceback."""

import json

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from vertex_training_cli.check import checking
from vertex_training_cli.check.report import (
    FileReport,
    as_json,
    as_workflow_commands,
    text_lines,
)

#: Pieces of job files, and of what goes wrong with them.
WORDS = (
    "workerPoolSpecs: jobSpec: replicaCount: x: - { } [ ] &a *a <<: ? !! ' \" >\n | # : --- "
    "${buckets.data} ${ 0x1F 1e3 no ~ 22:22 \x00 \ufeff é \x1b[2J ::error::"
)
SPACES = (" ", "  ", "\n", "\n  ", "\t", "\r", "\u2028", "\n---\n")
PIECES = st.sampled_from([*WORDS.split(" "), *SPACES])
TEXTS = st.lists(PIECES | st.text(max_size=5), max_size=40).map("".join)
BYTES = st.binary(max_size=200) | TEXTS.map(lambda text: text.encode("utf-8", "surrogatepass"))


def judged(tmp_path, data) -> FileReport:
    file = tmp_path / "job.yaml"
    file.write_bytes(data)
    return checking.check_without_stack(str(file))


def told_in_every_format(report):
    lines = list(text_lines([report], color=False))
    assert all(line.isprintable() for line in lines)
    assert all("\n" not in command for command in as_workflow_commands([report]))
    rows = json.loads(as_json([report]))["files"][0]["findings"]
    for row in rows:
        assert row["line"] >= 1
        assert row["endColumn"] > row["column"] >= 1
        assert row["rule"]


@given(data=BYTES)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_any_bytes_are_judged_and_told(tmp_path, data):
    told_in_every_format(judged(tmp_path, data))
