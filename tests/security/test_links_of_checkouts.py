"""Tests that links in a cloned repository or branch expose no file outside of the checkout.

What git cannot carry (pipes, sockets, links that are swapped meanwhile) is not tried here: whoever
can put those there writes as the user.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import pytest
from typer.testing import CliRunner

from vertex_training.errors import ConfigError, UnknownStackError
from vertex_training.plan import packages
from vertex_training.stack import read_settings
from vertex_training_cli.cli import app
from vertex_training_cli.engine.stacks import read_stack_file
from vertex_training_cli.images import building
from vertex_training_cli.local import up

SECRET: Final = "FROM canary-of-the-host"
STACK: Final = """\
config:
  gcp:project: local-training
  gcp:region: us-central1
  vertex-training:packages: {digits: {path: jobs/digits}}
  vertex-training:jobs: {digits: {file: jobs/digits.yaml}}
"""


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    file = tmp_path / "outside" / "secret"
    file.parent.mkdir()
    file.write_text(f"{SECRET}\n")
    return file


@pytest.fixture
def checkout(tmp_path: Path, outside: Path) -> Path:
    root = tmp_path / "checkout"
    (root / "jobs/digits").mkdir(parents=True)
    (root / "jobs/digits/__init__.py").write_text("")
    (root / "jobs/digits.py").write_text("")
    (root / "jobs/digits/Dockerfile").symlink_to(outside)
    (root / "jobs/digits-image.yaml").write_text("imageUri: ${images.digits}\n")
    (root / "jobs/digits.yaml").write_text("packageUris: ${packages.digits}\n")
    (root / "Pulumi.local.yaml").write_text(STACK)
    return root


def refused(call: object, *words: object) -> str:
    assert callable(call)
    with pytest.raises(ConfigError) as failed:
        call(*words)
    assert "canary" not in str(failed.value)
    return str(failed.value)


def test_dockerfile_linked_out_of_its_folder_is_refused_unread(checkout: Path) -> None:
    raw = {
        "stack": "dev", "project": "acme-ml-dev", "region": "us-central1",
        "projectNumber": "210987654321", "images": {"digits": {"context": "jobs/digits"}},
    }  # fmt: skip
    assert "Dockerfile links to a file outside of the folder" in refused(
        read_settings, raw, checkout
    )


def test_linked_requirements_of_a_script_are_refused_unread(checkout: Path, outside: Path) -> None:
    (checkout / "jobs/digits.requirements.txt").symlink_to(outside)
    said = refused(packages.build, "digits", checkout / "jobs/digits.py", "jobs/digits.py")
    assert "jobs/digits.requirements.txt: this symbolic link leads out of the package" in said


@pytest.mark.parametrize("name", ["requirements.txt", "data.csv"])
def test_linked_file_of_package_is_refused_unread(checkout: Path, outside: Path, name: str) -> None:
    (checkout / "jobs/digits" / name).symlink_to(outside)
    said = refused(packages.build, "digits", checkout / "jobs/digits", "jobs/digits")
    assert f"jobs/digits/{name}: this symbolic link leads out of the package" in said


#: A job file with a mistake that has one certain mend.
MENDABLE: Final = "workerPoolSpecs: []\nschedulling: {timeout: 24h}\n"


@pytest.mark.parametrize("with_project", [True, False])
@pytest.mark.parametrize("link", ["jobs/x.yaml", "linked", "linked/jobs/x.yaml", ".git"])
@pytest.mark.parametrize("cwd", [".", "..", "jobs"])
def test_check_fix_changes_no_file_outside_of_the_checkout(
    checkout: Path, outside: Path, link: str, cwd: str, with_project: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Covers linked files, linked folders and links to git's own files."""
    if with_project:
        (checkout / "Pulumi.yaml").write_text("name: x\nruntime: python\n")
        (outside.parent / "Pulumi.yaml").write_text("name: x\nruntime: python\n")
    (checkout / ".git").mkdir()
    (checkout / ".git" / "x.yaml").write_text(MENDABLE)
    (outside.parent / "jobs").mkdir()
    victim = outside.parent / "jobs" / "x.yaml"
    victim.write_text(MENDABLE)
    file = checkout / "jobs" / "x.yaml"
    if link == ".git":
        file.symlink_to("../.git/x.yaml")
    elif link == "linked":
        file = checkout / "linked" / "x.yaml"
        file.parent.symlink_to(victim.parent)
    elif link == "linked/jobs/x.yaml":
        file = checkout / "linked" / "jobs" / "x.yaml"
        file.parent.parent.symlink_to(outside.parent)
    else:
        file.symlink_to(victim)
    before = file.stat().st_ino
    monkeypatch.chdir(checkout / cwd)
    for named in (file, os.path.relpath(file), os.path.relpath(file.parent)):
        done = CliRunner().invoke(app, ["check", "--fix", str(named)])
        assert (done.exit_code, file.stat().st_ino) == (2, before), done.output
        assert "is a link to a file outside the checkout" in done.stderr, done.output
    assert victim.read_text() == MENDABLE


#: A stack with an image that gets a pin.
PINNED: Final = f"{STACK}  vertex-training:images: {{digits: {{context: jobs/digits}}}}\n"


def test_stack_file_is_not_written_through_a_link(checkout: Path, outside: Path) -> None:
    """A clone may contain a link in place of the partial file that a killed command leaves."""
    for name in (".Pulumi.local.yaml.partial", ".Pulumi.local-endpoint.yaml.partial"):
        (checkout / name).symlink_to(outside)
    (checkout / "Pulumi.local.yaml").write_text(PINNED)
    assert building.write_pins(checkout, "local", "digits", {"digest": "sha256:0"})
    assert "sha256:0" in (checkout / "Pulumi.local.yaml").read_text()
    up.write(checkout / "Pulumi.local-endpoint.yaml", "local", {"gcp:project": "x"})
    assert "gcp:project: x" in (checkout / "Pulumi.local-endpoint.yaml").read_text()
    assert outside.read_text() == f"{SECRET}\n"


def test_image_pin_is_not_written_into_a_linked_stack_file(checkout: Path, tmp_path: Path) -> None:
    foreign = tmp_path / "Pulumi.foreign.yaml"
    foreign.write_text(PINNED)
    (checkout / "Pulumi.local.yaml").unlink(missing_ok=True)
    (checkout / "Pulumi.local.yaml").symlink_to(foreign)
    with pytest.raises(
        UnknownStackError, match=r"is a symbolic link out of the folder of Pulumi\.yaml"
    ):
        building.write_pins(checkout, "local", "digits", {"digest": "sha256:0"})
    assert foreign.read_text() == PINNED


#: No file of a stack or a job, but YAML: what a report of it would quote.
QUOTED: Final = "canary: {of: the host}\n"


@pytest.fixture
def named(checkout: Path, outside: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (checkout / "Pulumi.yaml").write_text("name: x\nruntime: python\n")
    (checkout / ".git").mkdir()
    (checkout / ".git/config").write_text(QUOTED)
    outside.write_text(QUOTED)
    monkeypatch.chdir(checkout)
    return checkout


@pytest.mark.parametrize("target", ["../outside/secret", ".git/config", "round"])
@pytest.mark.parametrize(
    "words", [("check", "-s", "dev"), ("render", "digits", "-s", "dev"), ("diff", "dev", "dev")]
)
def test_linked_stack_file_is_refused(named: Path, target: str, words: tuple[str, ...]) -> None:
    (named / "round").symlink_to("../outside/secret")
    (named / "Pulumi.dev.yaml").symlink_to(target)
    done = CliRunner().invoke(app, list(words))
    assert (
        "Pulumi.dev.yaml: the stack file is a symbolic link out of the folder of Pulumi.yaml"
        in done.stderr
    ), done.output
    assert "canary" not in done.output
    with pytest.raises(
        UnknownStackError, match=r"is a symbolic link out of the folder of Pulumi\.yaml"
    ):
        read_stack_file(named, "dev")


def test_stack_file_may_link_to_a_file_of_the_checkout(named: Path) -> None:
    (named / "shared.yaml").write_text(STACK)
    (named / "Pulumi.dev.yaml").symlink_to("shared.yaml")
    assert "vertex-training:jobs" in read_stack_file(named, "dev")["config"]


@pytest.mark.parametrize("words", [(), ("jobs",), ("jobs/x.yaml",), ("-s", "local", "jobs/x.yaml")])
def test_linked_job_file_is_not_quoted(named: Path, words: tuple[str, ...]) -> None:
    (named / "jobs/x.yaml").symlink_to("../../outside/secret")
    done = CliRunner().invoke(app, ["check", *words])
    assert "jobs/x.yaml is a link to a file outside the checkout" in done.stderr, done.output
    assert ("canary" in done.output, done.exit_code) == (False, 2)


def test_link_given_by_the_user_is_read(named: Path, outside: Path) -> None:
    link = outside.parent / "mine.yaml"
    link.symlink_to(outside)
    assert "canary" in CliRunner().invoke(app, ["check", str(link)]).output


@pytest.mark.parametrize("file", ["../outside/secret", "jobs/x.yaml"])
def test_job_file_outside_of_the_checkout_is_not_quoted(named: Path, file: str) -> None:
    (named / "jobs/x.yaml").symlink_to("../../outside/secret")
    text = f"{STACK}  vertex-training:tuning: {{x: {{file: {file}}}}}\n  vertex-training:wrong: 1\n"
    (named / "Pulumi.local.yaml").write_text(text)
    done = CliRunner().invoke(app, ["check", "-s", "local"])
    assert "vertex-training:wrong" in done.output
    assert ("canary" in done.output, done.exit_code) == (False, 1)
