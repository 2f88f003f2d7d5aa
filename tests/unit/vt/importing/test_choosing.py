"""Which source and job `vt import` takes, what it refuses, and what it says at the end."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import typer

from vertex_training.errors import CheckUnavailableError, CommandError, Level, Problem
from vertex_training_cli.check.report import FileReport, LintFinding
from vertex_training_cli.engine import stacks
from vertex_training_cli.importing import command
from vertex_training_cli.importing.imported import ImportedJob
from vertex_training_cli.importing.sources import SourceContents
from vertex_training_cli.local import commands
from vertex_training_cli.local import up as local_up
from vertex_training_cli.up import lost_state

TWO = """\
gcloud ai custom-jobs create --display-name=a --worker-pool-spec=container-image-uri=i/a:1
gcloud ai custom-jobs create --display-name=b --worker-pool-spec=container-image-uri=i/b:1
"""


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "two.sh").write_text(TWO)
    return tmp_path / "two.sh"


ONE = "name one source: a file, a job that ran by --job ID, or --run COMMAND."


@pytest.mark.parametrize(
    ("source", "job", "run", "name", "message", "hint"),
    [
        (False, "", "", "", ONE, ""),
        (True, "", "python x.py", "", ONE, ""),
        (True, "a", "python x.py", "", ONE, ""),
        (True, "c", "", "", "no job is named 'c'.", "there are: a, b"),
        (True, "", "", "x", "--name is for one job, and there are 2.", ""),
    ],
)
def test_what_is_not_one_source_and_one_job_is_refused(
    script: Path, source: bool, job: str, run: str, name: str, message: str, hint: str
) -> None:
    with pytest.raises(CommandError) as refused:
        command._proposal(script if source else None, job, run, "dev", name)
    assert (refused.value.message, refused.value.hint) == (message, hint)


@pytest.mark.usefixtures("script")
def test_a_job_that_ran_is_one_of_a_project() -> None:
    with pytest.raises(CheckUnavailableError) as refused:
        command._proposal(None, "5", "", "dev", "")
    assert str(refused.value) == "no Pulumi.yaml here or above: a stack needs a project"


def test_of_jobs_with_one_name_the_first_is_taken() -> None:
    first, second = ImportedJob("a", {"x": 1}), ImportedJob("a", {"x": 2})
    found = SourceContents([first, second])
    command._choose(found, "a")
    told = "the first of the jobs named a is taken, left out: 1 more"
    assert (found.jobs, found.remarks) == ([first], [told])


@pytest.mark.parametrize(("format_", "as_json"), [("text", False), ("json", True)])
def test_a_format_is_text_or_json(format_: str, as_json: bool) -> None:
    assert command._is_json(format_) is as_json
    with pytest.raises(CommandError) as refused:
        command._is_json(f"{format_}x")
    assert (refused.value.message, refused.value.hint) == (
        f"--format has no '{format_}x'.", "write text or json",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("stack", "message", "hint"),
    [
        ("", "--up needs a stack, and there is no Pulumi.yaml here or above.", ""),
        ("prod", "--up is for a stack of the local cloud, and prod is not one.",
         "write with --write, have it reviewed, then `vt up --stack prod`"),
    ],
)  # fmt: skip
def test_only_a_stack_of_the_local_cloud_is_brought_up(stack: str, message: str, hint: str) -> None:
    with pytest.raises(CommandError) as refused:
        command._ensure_local(SimpleNamespace(is_local=False, stack=stack))  # type: ignore[arg-type]
    assert (refused.value.message, refused.value.hint) == (message, hint)
    command._ensure_local(SimpleNamespace(is_local=True, stack=stack))  # type: ignore[arg-type]


def test_the_imported_jobs_alone_decide_how_it_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = list[Any]()

    def run(home: Any, stack: str, **how: Any) -> int:
        calls.append((home.root, stack, how))
        return 3

    monkeypatch.setenv("VT_LOCAL_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(local_up, "run", run)
    jobs = [ImportedJob("a", {}), ImportedJob("b", {})]
    made: Any = SimpleNamespace(root=tmp_path, stack="local", jobs=jobs)
    with pytest.raises(typer.Exit) as ended:
        command._bring_up(made)
    assert ended.value.exit_code == 3
    how = {"wait": True, "report": commands.report, "only": ["a", "b"]}
    assert calls == [(tmp_path / "home", "local", how)]


@pytest.mark.parametrize("write", [True, False])
def test_what_a_state_has_lost_is_taken_over_from_the_stacks_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: bool
) -> None:
    calls = list[Any]()

    def take_over(ref: Any, pulumi: Any, tell: Any, *, write: bool) -> int:
        calls.append((ref.root, pulumi.root, tell, write))
        return 5

    ref = SimpleNamespace(root=tmp_path, environment=lambda _: {})
    monkeypatch.setattr(stacks, "find", {"dev": ref}.__getitem__)
    monkeypatch.setattr(lost_state, "take_over", take_over)
    assert command._take_over("dev", write=write) == 5
    assert calls == [(tmp_path, tmp_path, command.print_line, write)]


def finding(rule: str, level: Level, file: str = "/copy/jobs/a.yaml") -> LintFinding:
    return LintFinding(file, 1, 2, 3, Problem("w", rule=rule, level=level))


def test_files_to_come_are_named_as_they_will_be(tmp_path: Path) -> None:
    (tmp_path / "Pulumi.dev.yaml").write_text("")
    made: Any = SimpleNamespace(files={"jobs/a.yaml": "x"}, named=[], root=tmp_path)
    for path, name in [
        ("/copy/jobs/a.yaml", "jobs/a.yaml"), ("/copy/Pulumi.dev.yaml", "Pulumi.dev.yaml"),
        ("/copy/other-jobs/a.yml", "/copy/other-jobs/a.yml"),
    ]:  # fmt: skip
        report = FileReport(path, (finding("placeholder", "warning", path),), ("line",))
        told = dataclasses.replace(finding("placeholder", "note"), file=name)
        assert command._renamed(report, made) == FileReport(name, (told,), ("line",))


FIRST, WITH_WRITE = "The mistakes come first.", "With --write, it is."


@pytest.mark.parametrize(
    ("options", "steps"),
    [
        ({}, ["proposal", ("offer", False, False, False)]),
        ({"write": True}, ["proposal", ("offer", True, False, False)]),
        ({"format_": "json"}, ["proposal", ("offer", False, False, True)]),
        ({"fix": True}, ["proposal", "mend", ("offer", False, False, False)]),
        ({"up": True}, ["proposal", "ensure", ("offer", True, True, False), "up"]),
        ({"up": True, "fix": True},
         ["proposal", "ensure", "mend", ("offer", True, True, False), "up"]),
    ],
)  # fmt: skip
def test_what_is_asked_for_is_done_in_this_order(
    monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], steps: list[Any]
) -> None:
    done = list[Any]()

    def proposal(*given: Any, isolated: bool) -> str:
        assert isolated
        assert given == (Path("x.py"), "j", "r", "s", "n")
        done.append("proposal")
        return "made"

    def offer(made: str, *, write: bool, only_right: bool, as_json: bool) -> None:
        done.append(("offer", write, only_right, as_json))

    monkeypatch.setattr(command, "_proposal", proposal)
    monkeypatch.setattr(command, "offer", offer)
    for name, step in (("_ensure_local", "ensure"), ("_mend", "mend"), ("_bring_up", "up")):
        monkeypatch.setattr(command, name, lambda made, step=step: done.append(step))
    command.import_(source=Path("x.py"), job="j", run="r", stack="s", name="n", **options)
    assert done == steps
