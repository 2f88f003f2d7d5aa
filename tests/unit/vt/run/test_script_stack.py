"""The stack of scripts, where it is brought up, and what ``vt run`` makes of a script."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from localgcp.home import Home
from vertex_training import stack as stacks
from vertex_training_cli.cli import app
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.jobs.service import Jobs
from vertex_training_cli.run import command, script, submission

RESOURCE = "projects/1/locations/us-central1/customJobs/7"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A local cloud's folder; the environment is put back afterwards."""
    made = Home(tmp_path / "home", tmp_path)
    made.root.mkdir()
    monkeypatch.setenv("VT_LOCAL_HOME", "elsewhere")
    monkeypatch.setattr(Home, "find", lambda: made)
    return made


def test_the_stack_of_scripts_has_two_buckets_and_an_account_for_them(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(StackRef, "environment", lambda *_: {})
    monkeypatch.setattr(StackRef, "connect_clients", lambda _: None)
    monkeypatch.setattr(submission, "has_bucket", lambda *_: True)
    settings = stacks.load(script.find(print).root, "local").settings
    assert {key: each.force_destroy for key, each in settings.buckets.items()} == {
        "code": True, "artifacts": True,
    }  # fmt: skip
    [(name, account)] = settings.service_accounts.items()
    assert (name, list(account.reads), list(account.writes)) == (
        "trainer", ["code"], ["artifacts"],
    )  # fmt: skip


@pytest.fixture
def prepared(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Scripts as they are prepared; each job is submitted, and ends with exit code 3."""
    found: list[Any] = []
    ref = StackRef(Path("/srv/run"), "vt-run", "local", "local-run", "us-central1")
    loaded = SimpleNamespace(settings="settings")
    run = SimpleNamespace(request=SimpleNamespace(submission=SimpleNamespace(job="run_fit")))
    monkeypatch.setattr(Jobs, "__init__", lambda jobs, ref: setattr(jobs, "ref", ref))
    monkeypatch.setattr(script, "find", lambda log: log("found") or ref)
    monkeypatch.setattr(script, "prepare", lambda *given: found.append(given) or run)
    monkeypatch.setattr(command, "load_stack", lambda root, stack: loaded)
    monkeypatch.setattr(command, "tell", lambda *given: found.append(given))
    monkeypatch.setattr(
        command.submission, "submit", lambda *given: found.append(given) or RESOURCE
    )
    monkeypatch.setattr(
        command, "_follow", lambda jobs, resource: found.append((jobs.ref, resource)) or 3
    )
    found.append((ref, loaded, run))
    return found


def test_a_script_runs_in_its_stack_and_its_exit_code_is_handed_on(
    prepared: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("fit.py").write_text("")
    done = CliRunner().invoke(app, ["run", "fit.py", "--name", "my-run", "--", "--a", "1"])
    (ref, loaded, run), *steps = prepared
    assert steps == [
        (Path("fit.py"), ["--a", "1"], ref, loaded, "my-run"),
        (run, "settings"),
        (run, loaded),
        (ref, RESOURCE),
    ]
    assert (done.exit_code, done.stdout) == (3, "")
    assert done.stderr == "vt: found\nvt: submitted run_fit: 7\n"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("fit.py", "--stack", "dev"),
         "a script has a stack of its own. Hint: name a job or a job file"),
        (("none.py",), "there is no file none.py."),
        (("fit.py", "--name", "My Run"),
         "'My Run' is no name of a job. Hint: write my-run"),
    ],
)  # fmt: skip
def test_what_is_no_script_is_told_before_anything_starts(
    prepared: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...], text: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    Path("fit.py").write_text("")
    done = CliRunner().invoke(app, ["run", *words])
    assert (done.exit_code, done.stderr) == (1, f"vt run: {text}\n")
    assert len(prepared) == 1


def test_doubts_of_a_run_are_told_without_secrets(capsys: pytest.CaptureFixture[str]) -> None:
    token = "ghp_" + "a1B2" * 9
    run: Any = SimpleNamespace(warnings=("first", f"token {token}"))
    settings: Any = SimpleNamespace(limits=SimpleNamespace(in_usd=()), teams={})
    command.tell(run, settings)
    first, second = capsys.readouterr().err.splitlines()
    assert first == "vt: first"
    assert token not in second
