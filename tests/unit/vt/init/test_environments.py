"""``vt init --environment``: an environment stands everywhere, or nowhere."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.unit.vt.init.test_init import files, made, vt


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return made(tmp_path / "x", "--name", "acme")


def test_environments_are_deployed_in_the_order_that_was_asked_for(root: Path) -> None:
    vt("init", str(root), "--environment", "prod", "--write")
    vt("init", str(root), "--environment", "staging", "--before", "prod", "--write")
    deploy = yaml.safe_load((root / ".github/workflows/deploy.yml").read_text())["jobs"]
    assert list(deploy) == ["dev", "plan-staging", "staging", "plan-prod", "prod"]
    assert deploy["plan-staging"]["needs"] == ["dev"]
    assert deploy["plan-prod"]["needs"] == ["dev", "staging"]
    said = vt("init", str(root), "--environment", "qa", "--before", "dev", code=2)
    assert "no environment that is deployed later (got dev)" in said


def test_edits_of_the_repository_stay(root: Path) -> None:
    makefile = (root / "Makefile").read_text()
    (root / "Makefile").write_text(makefile + "\nours:\n\t@echo ours\n")
    (root / "jobs/digits.yaml").unlink()
    vt("init", str(root), "--environment", "staging", "--write")
    after = (root / "Makefile").read_text()
    assert "in local dev staging;" in after
    assert after.endswith("ours:\n\t@echo ours\n")
    assert not (root / "jobs/digits.yaml").exists()


def test_what_both_sides_changed_is_beside_the_file(root: Path) -> None:
    owners = root / ".github/CODEOWNERS"
    mine = owners.read_text() + "/Pulumi.dev.yaml @acme/dev\n"
    owners.write_text(mine)
    said = vt("init", str(root), "--environment", "staging", "--write", code=1)
    assert "conflict: .github/CODEOWNERS" in said
    assert owners.read_text() == mine
    beside = (root / ".github/CODEOWNERS.merge").read_text()
    assert "<<<<<<< this repository" in beside
    assert "/Pulumi.staging.yaml" in beside
    said = vt("init", str(root), "--environment", "qa", "--write", code=2)
    assert "an earlier merge is not finished: .github/CODEOWNERS.merge" in said
    (root / ".github/CODEOWNERS.merge").unlink()
    vt("upgrade", str(root))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("dev", "is there already"),
        ("local", "is the stack of the local cloud"),
        ("Prod", "1 to 20 lowercase letters and digits"),
        ("a b", "1 to 20 lowercase letters and digits"),
        ("../x", "1 to 20 lowercase letters and digits"),
        ("eu-west", "1 to 20 lowercase letters and digits"),
    ],
)
def test_odd_names_are_refused(name: str, said: str, root: Path) -> None:
    before = files(root)
    found = vt("init", str(root), "--environment", name, "--write", code=2)
    assert said in found
    assert found.count("\n") == 1
    assert files(root) == before


def test_twice_is_refused(root: Path) -> None:
    vt("init", str(root), "--environment", "staging", "--write")
    before = files(root)
    assert "is there already" in vt("init", str(root), "--environment", "staging", code=2)
    assert files(root) == before


def test_a_stack_file_of_ones_own_is_not_taken_over(root: Path) -> None:
    (root / "Pulumi.staging.yaml").write_text("config: {}\n")
    before = files(root)
    said = vt("init", str(root), "--environment", "staging", "--write", code=2)
    assert "there already: Pulumi.staging.yaml" in said
    assert files(root) == before


def test_without_a_manifest_it_says_so(tmp_path: Path) -> None:
    said = vt("init", str(tmp_path), "--environment", "staging", code=2)
    assert "no .vertex-training.json in" in said


def test_answers_of_the_whole_repository_are_refused(root: Path) -> None:
    said = vt("init", str(root), "--environment", "qa", "--team", "x", "--name", "y", code=2)
    assert said.count("is of the whole repository") == 2


def test_options_of_environments_need_one(tmp_path: Path) -> None:
    assert "--before goes with --environment" in vt("init", str(tmp_path), "--before", "x", code=2)
    assert "--write goes with --environment" in vt("init", str(tmp_path), "--write", code=2)
