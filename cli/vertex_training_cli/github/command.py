"""Command line of ``vt github``, which reads variables of GitHub's runner.

https://docs.github.com/actions/reference/variables-reference
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated

import typer

from vertex_training.errors import ApprovalParseError, CommandError
from vertex_training_cli.console import print_line
from vertex_training_cli.drift.findings import DriftOutcome
from vertex_training_cli.github import preview_run, repository
from vertex_training_cli.github.preview_run import PreviewRun

Stack = Annotated[
    str, typer.Option("--stack", "-s", help="Stack that the comment, approval or issue is about.")
]
Report = Annotated[Path, typer.Argument(help="Drift report in Markdown.", metavar="REPORT.md")]


def comment(
    stack: Stack,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="Write the approval that a merge gives to this file."),
    ],
) -> None:
    """Create or update the stack's comment on a pull request after its preview.

    Use this command in a workflow on `workflow_run`. The artifact of the preview is untrusted data:
    the command validates the artifact and renders the report. A merge approves the plan if the
    preview ran on the commit that GitHub would merge. The step's output `kept` is the name of the
    artifact for the approval.

    Example: `vt github comment --stack dev -o kept.json`.

    Exit code: 0 done, or no pull request is open for the commit; 1 the comment cannot be written,
    or the artifact was refused (the comment has the reason).
    """
    output.unlink(missing_ok=True)
    event = json.loads(Path(_variable("GITHUB_EVENT_PATH")).read_text(encoding="utf-8"))
    run = PreviewRun.of_event(event, _variable("GITHUB_REPOSITORY"))
    pull = run.find_pull()
    if pull is None:
        _log("this commit no longer has an open pull request.")
        return
    comment_ = preview_run.make_comment(run, pull, stack, os.environ)
    source = f"Other workflows can also write comments; [this run]({_this_run()}) wrote this one."
    texts = comment_.text, source
    answer = repository.write_comment(run.repository, pull["number"], stack, *texts)
    _log(answer["html_url"])
    kept = repository.KeptApproval.of(answer, comment_.approval)
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(kept.model_dump_json() + "\n", encoding="utf-8")
    _append("GITHUB_OUTPUT", f"kept={repository.name_of(stack, pull['number'])}\n")
    _append("GITHUB_STEP_SUMMARY", answer["body"])
    if comment_.reason:
        _log(comment_.reason)
    if comment_.is_refused:
        raise typer.Exit(1)


def approval(
    stack: Stack,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Write the approval to this file.")
    ],
) -> None:
    """Fetch the approval of the pull request whose merge created the commit GITHUB_SHA.

    Example: `vt github approval --stack dev -o approval.json`.
    """
    try:
        name = _variable("GITHUB_REPOSITORY")
        record = repository.read_approval(name, _variable("GITHUB_SHA"), stack)
    except ApprovalParseError as reason:
        raise CommandError(f"the approval record in the report is damaged: {reason}") from None
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(record.as_json() + "\n", encoding="utf-8")
    _log(f"approved: {record.as_json()}")


def drift(stack: Stack, report: Report) -> None:
    """Create, update or close the stack's drift issue from REPORT.md and REPORT.json beside it.

    Example: `vt github drift --stack dev drift.md`.
    """
    text = report.read_text(encoding="utf-8")
    document = json.loads(report.with_suffix(".json").read_text(encoding="utf-8"))
    outcome = DriftOutcome[document["outcome"].upper()]
    name, run = _variable("GITHUB_REPOSITORY"), _this_run()
    _log(repository.update_drift_issue(name, stack, outcome, text, run))


def _this_run() -> str:
    server, run = os.environ.get("GITHUB_SERVER_URL"), os.environ.get("GITHUB_RUN_ID")
    return f"{server}/{_variable('GITHUB_REPOSITORY')}/actions/runs/{run}" if run else ""


def _variable(name: str) -> str:
    if value := os.environ.get(name):
        return value
    what = f"the environment variable {name} is not set."
    raise CommandError(what, "run this command in a workflow of GitHub Actions.")


def _append(variable: str, text: str) -> None:
    if name := os.environ.get(variable):
        with Path(name).open("a", encoding="utf-8") as file:
            file.write(text)


def _log(text: str) -> None:
    print_line(f"vt github: {text}")
