"""`vt iam`, and what it writes of the fixtures' stacks."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.fixture_project import PROJECT, ROOT, copy_project
from vertex_training_cli.cli import app


@pytest.fixture(autouse=True)
def _among_stacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(PROJECT)


def test_the_grants_are_those_of_the_recorded_page() -> None:
    done = CliRunner().invoke(app, ["iam", "dev", "prod", "--format", "markdown"])
    assert done.exit_code == 0, done.output
    page = ROOT / "tests" / "golden" / "iam.md"
    if os.environ.get("UPDATE_GOLDEN"):
        page.write_text(done.stdout)
    hint = "run: UPDATE_GOLDEN=1 .venv/bin/python -m pytest tests/unit/docs/test_iam_page.py"
    assert done.stdout == page.read_text(), hint


def test_the_other_formats_have_accounts_of_ci_and_of_the_stack() -> None:
    done = CliRunner().invoke(app, ["iam", "dev", "--format", "json"])
    [dev] = json.loads(done.stdout)
    members = {grant["member"].partition(":")[2].partition("@")[0] for grant in dev["grants"]}
    assert {"ci-deploy-dev", "ci-plan-dev", "ci-preview-dev", "trainer-dev"} <= members
    custom = {grant["role"] for grant in dev["grants"] if grant["role"].startswith("training_")}
    assert custom == set(dev["roles"])
    table = CliRunner().invoke(app, ["iam", "dev"]).stdout
    for grant in dev["grants"]:
        assert grant["member"] in table
        assert not grant["condition"] or grant["condition"] in table
    assert "denied to all CI accounts" in table


def test_without_a_name_it_is_about_every_environment_that_bootstrap_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy_project(tmp_path)
    for folder in (tmp_path, tmp_path / "bootstrap"):
        (folder / "Pulumi.prod.yaml").rename(folder / "Pulumi.staging.yaml")
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["iam", "--format", "json"])
    assert [each["stack"] for each in json.loads(done.stdout)] == ["dev", "staging"]


def test_a_stack_that_bootstrap_does_not_have_is_shown_by_itself() -> None:
    done = CliRunner().invoke(app, ["iam", "peering", "--format", "json"])
    [peering] = json.loads(done.stdout)
    assert {each["member"] for each in peering["grants"]} & {
        "serviceAccount:trainer-peering@local-peering.iam.gserviceaccount.com"
    }
    assert (
        "vt iam: environment peering has no file in bootstrap/: "
        "only the grants of the stack are listed"
    ) in done.stderr


def test_a_stack_that_does_not_exist_is_wrong_usage() -> None:
    done = CliRunner().invoke(app, ["iam", "nowhere"])
    assert done.exit_code == 2
    assert "nowhere" in done.stderr
    assert done.stdout == ""
