"""Every command that prints things of the cloud prints one of each kind, and things of others.

``transcripts.txt`` has the commands with their output; with RECORD=1 it is written anew.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
from typer.testing import CliRunner

from localgcp.batch.records import BatchTable
from localgcp.vertex.records import JobRecord, JobState, JobTable
from tests.contract.cloud import REGION
from tests.golden.one_of_each import HOSTILE, Each, one_of_each
from tests.unit.localcloud.conftest import PROJECT
from vertex_training_cli.cli import app
from vertex_training_cli.console import is_seen

FILE: Final = Path(__file__).with_name("transcripts.txt")
RECORD: Final = os.environ.get("RECORD") == "1"
_HEAD: Final = re.compile(r"^\$ vt (.+)$", re.MULTILINE)
_TIMES: Final = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?Z?"
_DURATION: Final = r"\b(\d+h )?(\d+m )?(\d{1,2}s|\d+m)\b"
_BLANKS: Final = re.compile(r"(?<=\S) {2,}(?=\S)")
#: Commands that change what others print come last.
COMMANDS: Final = tuple(
    match[1] for match in _HEAD.finditer(FILE.read_text("utf-8") if FILE.exists() else "")
)


@pytest.fixture(scope="module")
def each(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Each]:
    with one_of_each(tmp_path_factory.mktemp("each")) as made, pytest.MonkeyPatch.context() as to:
        to.chdir(made.project)
        to.setenv("VT_LOCAL_HOME", str(made.cloud.home.root))
        to.setenv("STATE", str(made.tools / "state.json"))
        to.setenv("PATH", f"{made.tools}{os.pathsep}{os.environ['PATH']}")
        to.setenv("NO_COLOR", "1")
        to.setenv("COLUMNS", "200")
        for name in ("VERTEX_EMULATOR_HOST", "STORAGE_EMULATOR_HOST", "PULUMI_BACKEND_URL"):
            to.delenv(name, raising=False)
        yield made


#: Commands that the output of others names, by how they are printed.
_HINT: Final = re.compile(
    r"`vt ([^`]+)`|^(?:logs|console)? +vt (?!local down)(.+?) *$", re.MULTILINE
)


def printed_hints(text: str) -> list[str]:
    """Commands that an output names, without `vt`."""
    return [quoted or fact for quoted, fact in _HINT.findall(text)]


def transcript(each: Each, command: str) -> str:
    """The command with its output, without what every run has otherwise."""
    done = CliRunner().invoke(app, shlex.split(command))
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    text = done.stdout
    if text[:1] in ("{", "[") and "json" in command:
        text = json.dumps(json.loads(text), indent=1, sort_keys=True) + "\n"
    for line in (done.stdout + done.stderr).splitlines():
        assert all(map(is_seen, line)), line
    if done.stderr:
        text += f"stderr:\n{done.stderr}"
    for known, name in (
        (str(each.cloud.home.root), "<home>"), (str(each.project), "<project>"),
        (str(os.getpid()), "<pid>"),
    ):  # fmt: skip
        text = text.replace(known, name)
    text = re.sub(_TIMES, "<time>", text)
    text = re.sub(r"\b127\.0\.0\.1:\d+", "<address>", text)
    text = re.sub(r"\b[1-9]\d{18}\b", "<id>", text)
    text = re.sub(_DURATION, "<duration>", text)
    lines = (_BLANKS.sub("  ", line).rstrip() for line in text.splitlines())
    # Of the cloud, which serves in this process.
    body = "\n".join(line for line in lines if line and not line.startswith("vertex: refused"))
    return f"$ vt {command}\n{body}\nexit code {done.exit_code}\n"


def test_each_command_prints_one_of_each_kind(each: Each) -> None:
    """In the order of the file, since the last ones change what is there."""
    printed = "\n".join(transcript(each, command) for command in COMMANDS)
    if RECORD:
        FILE.write_text(printed, "utf-8")
    assert printed == FILE.read_text("utf-8")


def test_each_printed_command_runs_where_it_was_printed(each: Each) -> None:
    hints: dict[str, str] = {}
    for command in COMMANDS:
        done = CliRunner().invoke(app, shlex.split(command))
        for hint in printed_hints(done.stdout + done.stderr):
            hints.setdefault(hint, command)
    assert len(hints) > 5
    for hint, command in hints.items():
        confirm = " --yes" if "cancel" in hint else ""
        done = CliRunner().invoke(app, shlex.split(hint + confirm))
        why = f"vt {command} printed `vt {hint}`: {done.stdout}{done.stderr}"
        assert done.exit_code == 0, why


def test_a_job_of_others_with_control_characters_in_every_field_is_printed_plainly(
    each: Each,
) -> None:
    """Written as a record: the service would refuse most of them."""
    pool: dict[str, Any] = {
        "machineSpec": {"machineType": HOSTILE},
        "containerSpec": {"imageUri": HOSTILE},
    }
    pool["containerSpec"] |= {"args": [HOSTILE], "env": [{"name": HOSTILE, "value": HOSTILE}]}
    spec = {
        "workerPoolSpecs": [{**pool, "replicaCount": 1}],
        "serviceAccount": HOSTILE,
        "baseOutputDirectory": {"outputUriPrefix": f"gs://{HOSTILE}"},
    }
    body = {"displayName": HOSTILE, "jobSpec": spec, "labels": {HOSTILE: HOSTILE}}
    job = JobRecord.new(PROJECT, REGION, body, JobState.FAILED)
    JobTable(each.cloud.home.database).insert(replace(job, error_message=HOSTILE))
    id_ = job.job_id
    for command in (
        "local status", "jobs list --all", "jobs list --all --metrics",
        f"jobs show {id_}", f"jobs compare {id_} train", f"jobs logs {id_}",
        f"jobs artifacts {id_}", f"jobs wait {id_}", f"jobs cancel {id_} --yes",
    ):  # fmt: skip
        printed = transcript(each, command)
        assert "exit code 0" in printed or "stderr:" in printed, printed


def test_three_hundred_jobs_have_a_line_each(each: Each) -> None:
    for number in range(300):
        each.job(f"many-{number}")
    listed = CliRunner().invoke(app, ["jobs", "list", "--all", "--limit", "1000"]).stdout
    shown = CliRunner().invoke(app, ["local", "status"]).stdout
    for text in (listed, shown):
        assert {f"many-{number}" for number in range(300)} <= {*text.split()}


def test_a_batch_job_that_was_deleted_meanwhile_is_reported_as_such(each: Each) -> None:
    table = BatchTable(each.cloud.home)
    job = next(each for each in table.list() if each.job_id == "local-wine-batch-0")
    table.delete(job)
    summary = transcript(each, "local up")
    assert "JOB  wine\nstate  record deleted\nid  local-wine-batch-0\n" in summary
