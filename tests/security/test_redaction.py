"""Tests that no output or post contains a secret from the engine, the cloud or a file."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest
from typer.testing import CliRunner

from tests.fixture_project import PROJECT
from vertex_training.customjob.google.vertex_api import CustomJob, JobState
from vertex_training.errors import CommandError, EventParseError, OperatorError, PreviewError
from vertex_training_cli import diff
from vertex_training_cli.cli import app
from vertex_training_cli.console import console, show_facts, table
from vertex_training_cli.deploy import sources
from vertex_training_cli.diff import StackComparison
from vertex_training_cli.drift import findings
from vertex_training_cli.engine import events
from vertex_training_cli.engine.pulumi_cli import PulumiCli
from vertex_training_cli.engine.values import (
    UNKNOWN,
    WIRE_UNKNOWN,
    FieldDifference,
    LineRedactor,
    redact,
)
from vertex_training_cli.github import gh, repository
from vertex_training_cli.jobs import command

ROOT: Final = Path(__file__).parents[2]
TOKEN: Final = "hf_" + "canaryCANARY" * 3
PASSWORD: Final = "canary-hunter2"
SAID: Final = f"error: {TOKEN} and https://me:{PASSWORD}@example.com/x and --password={PASSWORD}"


def assert_redacted(text: str) -> None:
    """Check that ``text`` contains no canary, escaped or not, and that the redaction is marked."""
    plain = text.replace("\\", "")
    assert "canary" not in plain.lower(), text
    assert "[secret]" in plain


def stand_in(folder: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Return a command that fails and prints ``SAID``."""
    command = folder / name
    command.write_text(f"#!{sys.executable}\nimport sys\nsys.exit({SAID!r})\n")
    command.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))


@pytest.mark.parametrize("exit_code", [1, 255])
def test_drift_issue_contains_no_secret_of_an_error(exit_code: int) -> None:
    document = json.dumps({"diagnostics": [{"severity": "error", "message": SAID}], "steps": []})
    for stdout, stderr in (("", SAID), (SAID, ""), (document, SAID)):
        found = findings.read("prod", exit_code, stdout, stderr)
        assert found.outcome is findings.DriftOutcome.FAILED
        assert_redacted(findings.markdown(found))
        assert_redacted(findings.as_json(found))
        assert_redacted("".join(found.errors))


def test_drift_issue_contains_no_secret_of_a_resource() -> None:
    field = findings.PropertyDifference(f'env["{TOKEN}"]', SAID, SAID)
    difference = findings.ResourceDifference(
        "update", TOKEN, f"gcp:x:{TOKEN}", f"id/{TOKEN}", (field,), note=SAID
    )
    found = findings.Drift("prod", findings.DriftOutcome.DRIFTED, (difference,))
    assert_redacted(findings.markdown(found))
    assert_redacted(findings.as_json(found))


def test_long_value_is_redacted_before_truncation() -> None:
    value = "x" * (findings.MAX_SHOWN - 15) + " " + TOKEN
    old = {"inputs": {"a": value}, "outputs": {"a": value}, "id": "1"}
    step = {
        "op": "update",
        "urn": "urn:pulumi:prod::p::gcp:storage/bucket:Bucket::b",
        "oldState": {"type": "gcp:storage/bucket:Bucket", **old},
        "newState": {"type": "gcp:storage/bucket:Bucket", "inputs": {"a": "y"}},
        "detailedDiff": {"a": {"kind": "update"}},
    }
    found = findings.read("prod", 7, json.dumps({"steps": [step], "changeSummary": {}}), "")
    assert "canary" not in findings.markdown(found).lower()


def test_engine_error_contains_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(tmp_path, "pulumi", monkeypatch)
    engine = PulumiCli(tmp_path, {"PATH": str(tmp_path)})
    with pytest.raises(CommandError) as refused:
        engine.read_json("stack", "export")
    assert_redacted(str(refused.value))
    with pytest.raises(PreviewError) as empty:
        events.stream_events(engine, "prod")
    assert_redacted(str(empty.value))
    with pytest.raises(EventParseError) as unreadable:
        events.parse([SAID], "prod")
    assert_redacted(str(unreadable.value))


def test_git_and_gh_errors_contain_no_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(tmp_path, "git", monkeypatch)
    with pytest.raises(CommandError) as refused:
        sources.checkout(tmp_path, "dev")
    assert_redacted(str(refused.value))
    stand_in(tmp_path, "gh", monkeypatch)
    with pytest.raises(CommandError) as failed:
        gh.read("repos/acme/ml")
    assert_redacted(str(failed.value))


def test_comment_and_issue_are_posted_without_secrets() -> None:
    assert_redacted(repository.body("report", "prod", SAID))


def test_job_of_the_cloud_is_shown_without_secrets(capsys: pytest.CaptureFixture[str]) -> None:
    env = [{"name": "DB_PASS", "value": PASSWORD}, {"name": "HUB", "value": TOKEN}]
    container = {"env": env, "args": ["--password", PASSWORD], "command": [f"--x={TOKEN}"]}
    job = CustomJob(
        name="projects/1/locations/us-central1/customJobs/2",
        display_name=TOKEN,
        state=JobState.JOB_STATE_FAILED,
        labels={"job": "a"},
        error={"message": SAID},
        job_spec={"worker_pool_specs": [{"container_spec": container}]},
    )

    class Ref:
        project, region, is_local = "acme", "us-central1", False

    ref: Any = Ref()
    for as_json in (True, False):
        command.print_job(job, ref, as_json=as_json)
        assert_redacted(capsys.readouterr().out)
    command.print_jobs([job], ref, 1, as_json=True)
    assert_redacted(capsys.readouterr().out)


def test_table_and_list_of_facts_contain_no_secret(capsys: pytest.CaptureFixture[str]) -> None:
    out = console()
    out.print(table("JOB", "ERROR", rows=[("a", SAID)]))
    assert_redacted(capsys.readouterr().out)
    show_facts(out, ("JOB", TOKEN), [("error", SAID)])
    assert_redacted(capsys.readouterr().out)


def test_difference_of_two_stacks_is_shown_without_secrets() -> None:
    field = FieldDifference("jobs.a.env.DB", SAID, TOKEN)
    found = StackComparison("dev", "prod", (field,), (), ())
    assert_redacted(diff.as_text(found))
    assert_redacted(diff.as_json(found))


@pytest.mark.parametrize("format_", ["text", "json", "github"])
def test_mistake_in_a_stack_file_is_reported_without_its_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format_: str
) -> None:
    (tmp_path / "Pulumi.yaml").write_bytes((ROOT / "Pulumi.yaml").read_bytes())
    stack = (PROJECT / "Pulumi.dev.yaml").read_text(encoding="utf-8")
    stack = re.sub(r"gcp:region: .*", f"gcp:region: {TOKEN}", stack)
    extra = f'  vertex-training:registry: {{keepVersions: "https://me:{PASSWORD}@x"}}\n'
    (tmp_path / "Pulumi.dev.yaml").write_text(f"{stack}{extra}", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["check", "--stack", "dev", "--format", format_])
    assert done.exit_code == 1
    assert "canary" not in done.output.lower()


def test_sensitive_names_and_options_have_their_values_redacted() -> None:
    env = {"env": [{"name": "DB_PASS", "value": PASSWORD}], "args": ["--db-pass", PASSWORD]}
    assert_redacted(json.dumps(redact(env)))
    assert_redacted(json.dumps(redact({"password": PASSWORD, TOKEN: 1})))
    assert redact({"password": WIRE_UNKNOWN}) == {"password": UNKNOWN}
    plain = {"env": [{"name": "PAD_TOKEN", "value": "<pad>"}], "args": ["--key", "id"]}
    assert redact(plain) == plain


def test_only_one_function_prints_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    from vertex_training_cli.console import print_line

    print_line(f"vt drift: {SAID}")
    assert_redacted(capsys.readouterr().err)
    # What installs the packages runs before them, with the standard library alone.
    files = [
        file
        for file in (ROOT / "cli" / "vertex_training_cli").rglob("*.py")
        if file.name != "console.py" and file.parent.name != "toolchain"
    ]
    pattern = re.compile(r"print\((?:[^()]|\([^()]*\))*file=sys\.stderr")
    assert [file for file in files if pattern.search(file.read_text(encoding="utf-8"))] == []


def test_program_and_provider_errors_contain_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    import traceback
    from types import SimpleNamespace

    import pulumi

    from vertex_training import engine
    from vertex_training.customjob.provider import CustomJobProvider

    logged: list[str] = []
    monkeypatch.setattr(pulumi.log, "error", logged.append)
    with pytest.raises(SystemExit):
        engine.end_with_message(SAID)
    assert_redacted(logged[0])
    main = SimpleNamespace(traceback=traceback)
    monkeypatch.setitem(sys.modules, "__main__", main)
    CustomJobProvider().configure(pulumi.dynamic.ConfigureRequest(None))
    for error in (OperatorError(SAID), ValueError(SAID)):
        try:
            raise error
        except Exception:
            assert_redacted(main.traceback.format_exc())


def test_text_in_chunks_is_redacted_at_any_chunk_boundary() -> None:
    whole = f"one\n{SAID}\nAuthorization: Bearer {PASSWORD}\nlast \xff".encode()
    expected = b"".join((lines := LineRedactor()).feed(whole) for _ in range(1)) + lines.close()
    assert_redacted(expected.decode())
    for size in (1, 2, 3, 7, 64, len(whole)):
        cut = LineRedactor()
        pieces = [cut.feed(whole[at : at + size]) for at in range(0, len(whole), size)]
        assert b"".join(pieces) + cut.close() == expected


def test_multiline_private_key_is_redacted_and_later_lines_are_shown() -> None:
    key = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\n  + MIIcanary/+\n canary==\n"
    for end in ("-----END RSA PRIVATE KEY-----\n", "error: no key\n"):
        lines = LineRedactor()
        said = (lines.feed(f"a\n{key}{end}the end of it: 7\n".encode()) + lines.close()).decode()
        assert_redacted(said)
        assert said.endswith("the end of it: 7\n")


def test_very_long_line_is_redacted_in_bounded_memory() -> None:
    lines = LineRedactor()
    said = lines.feed(b"word " * 300_000 + TOKEN.encode()) + lines.feed(b"\n")
    assert said.count(b"word") == 300_000
    assert_redacted(said.decode())
    assert lines.feed(b"x" * 2**21).endswith(b"(a long line)")


PRINTS: Final = """\
import sys, time
said = sys.argv[1]
for stream in (sys.stdout, sys.stderr):
    for at in range(0, len(said), 5):
        stream.write(said[at:at + 5])
        stream.flush()
        time.sleep(0.001)
    stream.write(chr(10) + "exit 3")
sys.exit(3)
"""
RUNS: Final = """\
import sys
from pathlib import Path
from vertex_training_cli.engine import pulumi_cli
sys.exit(pulumi_cli.run_at_terminal([sys.executable, "-c", *sys.argv[1:]], Path.cwd(), {}))
"""


def test_pulumi_output_in_a_workflow_contains_no_secret() -> None:
    """`vt up` and `vt deploy` print pulumi's output through this filter."""
    done = subprocess.run(
        [sys.executable, "-c", RUNS, PRINTS, SAID], cwd=ROOT, capture_output=True, text=True,
        check=False, timeout=60, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 3
    for said in (done.stdout, done.stderr):
        assert_redacted(said)
        assert said.endswith("\nexit 3")


def test_command_continues_when_its_output_is_closed(tmp_path: Path) -> None:
    done = tmp_path / "done"
    script = "for _ in range(20_000): print('x' * 100)\n"
    script += f"import pathlib; pathlib.Path({str(done)!r}).touch()"
    with subprocess.Popen(
        [sys.executable, "-c", RUNS, script], cwd=ROOT, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.read(10)
        process.stdout.close()
        assert process.wait(60) == 0
    assert done.exists()


def test_background_process_of_a_command_does_not_delay_its_end(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    script = "import subprocess, sys; left = subprocess.Popen(['sleep', '600'])\n"
    script += f"open({str(pid)!r}, 'w').write(str(left.pid)); sys.exit(4)"
    try:
        done = subprocess.run(
            [sys.executable, "-c", RUNS, script], cwd=ROOT, stdout=subprocess.DEVNULL, check=False,
            timeout=240,
        )  # fmt: skip
    finally:
        os.kill(int(pid.read_text()), signal.SIGKILL)  # it ran on: a dead one could not be killed
    assert done.returncode == 4


@pytest.mark.parametrize("before", ["", "env "])
def test_shell_words_after_a_secret_assignment_are_shown(before: str) -> None:
    shown = redact(f"{before}DB_PASSWORD=canary-8x7 python train.py --epochs=3")
    assert "canary" not in shown
    assert shown.endswith(" python train.py --epochs=3")


@pytest.mark.parametrize(
    "line", ["DB_PASSWORD=48151623", "--password=4815", "PGPASSWORD: '48151623'"]
)
def test_password_of_digits_is_redacted(line: str) -> None:
    assert "4815" not in redact(line)


@pytest.mark.parametrize("line", ["DB_PASSWORD=123", "NUM_TOKENS=48151623", "DB_PASS=${DB_PASS}"])
def test_harmless_numbers_are_shown(line: str) -> None:
    assert redact(line) == line


def test_overlapping_secrets_are_redacted_to_the_last_end() -> None:
    assert redact(f"--password=hf_{'a' * 34},canary --epochs=3").endswith(" --epochs=3")
    assert "canary" not in redact(f"--password=hf_{'a' * 34},canary --epochs=3")


@pytest.mark.parametrize("value", ["<(cat password.txt)", "$(cat password.txt)", "`cat password`"])
def test_shell_variable_in_place_of_a_password_is_shown(value: str) -> None:
    line = f'mysql --password="{value}" --host=db'
    assert redact(line) == line
