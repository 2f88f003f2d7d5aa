"""Tests that workflows on a pushed branch, which run in the name of Actions, approve nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.unit.vt.github.conftest import GitHub, approval_of, hub, plan_text

__all__ = ["hub"]

WORKFLOWS: Final = Path(__file__).resolve().parents[2] / ".github" / "workflows"
BOT: Final = {"login": "github-actions[bot]"}
#: What a reader is shown, and another plan that would be deployed.
HARMLESS, BAD = plan_text("data"), plan_text("stolen")
KEPT: Final = "approval-dev-7"


@pytest.fixture
def merged(hub: GitHub) -> None:
    hub.add("pulls", number=7, merged_at="2026-11-21T10:00:00Z", merge_commit_sha="d" * 40)


def asked(hub: GitHub, expect: int) -> str:
    return hub.vt("approval", "-s", "dev", "-o", hub.file.with_name("x"), expect=expect)


def rewrite(hub: GitHub, **changed: Any) -> None:
    """Rewrite the comment by PATCH, as a workflow of a branch can."""
    state = hub.state
    state["comments"][0] |= {"updated_at": "written later", **changed}
    hub.file.write_text(json.dumps(state))


def marker(plan: str) -> str:
    return f"<!-- vt:report dev -->\n<!-- vt:approval {approval_of(plan)} -->\nNothing changes.\n"


@pytest.mark.usefixtures("merged")
def test_record_inside_a_comment_approves_nothing(hub: GitHub) -> None:
    hub.add("comments", id=1, issue=7, user=BOT, body=marker(BAD), updated_at="written 1")
    assert "pull request 7 has no successful preview of dev" in asked(hub, expect=1)


@pytest.mark.usefixtures("merged")
def test_comment_edited_after_its_report_is_not_approved(hub: GitHub) -> None:
    hub.told(plan=BAD, approval=True)
    asked(hub, expect=0)
    rewrite(hub, body=marker(HARMLESS))
    said = asked(hub, expect=1)
    assert "was changed or deleted before the deployment" in said
    assert "by hand" in said


@pytest.mark.usefixtures("merged")
def test_comment_edited_and_restored_is_not_approved(hub: GitHub) -> None:
    hub.told(plan=BAD, approval=True)
    rewrite(hub)
    assert "was changed or deleted before the deployment" in asked(hub, expect=1)


@pytest.mark.usefixtures("merged")
def test_deleted_comment_is_not_approved(hub: GitHub) -> None:
    hub.told(plan=BAD, approval=True)
    hub.file.write_text(json.dumps(hub.state | {"comments": []}))
    assert "was changed or deleted before the deployment" in asked(hub, expect=1)


#: Runs that a branch may start, whose artifacts have whatever name and content they like.
RUNS: Final[dict[str, dict[str, Any]]] = {
    "of a workflow of the branch": {"path": ".github/workflows/mine.yml", "event": "push"},
    "of the branch's own report.yml": {"event": "push", "head_branch": "topic"},
    "of report.yml started by hand": {"event": "workflow_dispatch"},
    "of report.yml on a branch": {"head_branch": "topic"},
    "of a preview": {"path": ".github/workflows/preview.yml", "event": "pull_request"},
    "of a fork": {"head_repository": {"full_name": "mallory/training"}},
    "of a path that only begins like it": {"path": ".github/workflows/report.yml.mine.yml"},
}


@pytest.mark.usefixtures("merged")
@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_artifact_of_another_run_approves_nothing(hub: GitHub, run: dict[str, Any]) -> None:
    hub.told(plan=HARMLESS, approval=True)
    asked(hub, expect=0)
    honest = json.loads(hub.file.with_name("x").read_text())
    forged = hub.kept() | {"approval": json.loads(approval_of(BAD))}
    hub.keep(KEPT, json.dumps(forged), **run)
    asked(hub, expect=0)
    assert json.loads(hub.file.with_name("x").read_text()) == honest


@pytest.mark.usefixtures("merged")
def test_newest_report_decides_about_approval(hub: GitHub) -> None:
    hub.told(plan=HARMLESS, approval=True)
    hub.told(plan=HARMLESS)  # its preview failed
    assert "has no successful preview of dev" in asked(hub, expect=1)


def test_report_workflow_stores_its_record_and_deploy_workflow_can_read_it() -> None:
    report = yaml.safe_load((WORKFLOWS / "report.yml").read_text())
    assert list(report[True]) == ["workflow_run"]  # the event that a branch cannot forge
    steps = report["jobs"]["comment"]["steps"]
    [comment] = [each for each in steps if each.get("run") == "make comment"]
    [kept] = [each for each in steps if "upload-artifact@" in str(each.get("uses"))]
    assert kept["with"]["name"] == f"${{{{ steps.{comment['id']}.outputs.kept }}}}"
    assert kept["with"]["path"].endswith("/approval.json")
    deploy = yaml.safe_load((WORKFLOWS / "deploy.yml").read_text())
    assert deploy["jobs"]["dev"]["permissions"]["actions"] == "read"
