"""An image is built once, and pinned as a whole or not at all."""

import os

import pytest
import yaml

from tests.unit.vt.images.conftest import write_stack
from vertex_training_cli.images import documents

BUILD = ("images", "build", "--stack", "one", "--engine", "buildah")
PATH = "local-one/training-one/train"


def calls(programs, verb="build"):
    file = programs / "calls"
    lines = file.read_text().splitlines() if file.exists() else []
    return [int(line.split()[1]) for line in lines if line.split()[0] == verb]


def pinned(root, stack="one"):
    config = yaml.safe_load((root / f"Pulumi.{stack}.yaml").read_text())["config"]
    return config["vertex-training:images"]["train"]


def test_a_build_that_takes_too_long_is_ended(vt, root, registry, programs):
    (programs / "mode").write_text("wait")
    before = (root / "Pulumi.one.yaml").read_bytes()
    result = vt(*BUILD, "--timeout", "1s")
    assert result.exit_code == 1
    assert "the build took longer than 1 s; cancelled" in result.output
    [pid] = calls(programs)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert (root / "Pulumi.one.yaml").read_bytes() == before


def test_a_stack_file_that_cannot_be_edited_says_what_to_write(vt, root, registry, programs):
    from tests.unit.vt.images.conftest import write_stack

    write_stack(root, "one", "local-one", "{context: &c jobs/train}\n    other: {context: *c}")
    text = (root / "Pulumi.one.yaml").read_text().replace("{context: &c", "&x {context: &c")
    (root / "Pulumi.one.yaml").write_text(text + "    third: *x\n")
    before = (root / "Pulumi.one.yaml").read_bytes()
    result = vt(*BUILD, "third")
    assert result.exit_code == 1
    assert "cannot be edited in place" in result.output
    assert (root / "Pulumi.one.yaml").read_bytes() == before


def test_rights_of_the_stack_file_stay(vt, root, registry, programs):
    (root / "Pulumi.one.yaml").chmod(0o640)
    vt(*BUILD)
    assert (root / "Pulumi.one.yaml").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("trian",), "stack one has no image 'trian'. Hint: did you mean 'train'?"),
        (("--engine", "dokcer"), "there is no engine 'dokcer'. Hint: did you mean 'docker'?"),
        (("--engine", "podman"), "podman is not installed here."),
        (("--stack", "two", "train"), "image train has no context in Pulumi.two.yaml"),
        (("--stack", "three"), "no file Pulumi.three.yaml in "),
    ],
)
def test_wrong_arguments_are_one_line(vt, root, registry, programs, arguments, line, monkeypatch):
    monkeypatch.setenv("PATH", str(programs))
    result = vt(*BUILD, *arguments)
    assert result.exit_code == (2 if "three" in arguments else 1)
    assert line in result.output
    assert "Traceback" not in result.output
    assert calls(programs) == []


def test_no_registry_is_one_line(vt, root, programs, monkeypatch):
    monkeypatch.setenv("ARTIFACT_REGISTRY_EMULATOR_HOST", "127.0.0.1:1")
    result = vt(*BUILD)
    assert result.exit_code == 1
    assert "http://127.0.0.1:1 cannot be reached" in result.output


def test_a_branch_cannot_lead_a_build_to_another_project_or_to_the_local_cloud(
    vt, root, tmp_path, programs
):
    trusted = tmp_path / "trusted"
    trusted.mkdir()
    (trusted / "Pulumi.yaml").write_text("name: vertex-training\nruntime: python\n")
    write_stack(trusted, "one", "acme-ml-dev", "{context: jobs/train}")
    result = vt("images", "build", "--stack", "one", "--target-of", trusted)
    assert result.exit_code == 1
    assert "stack one is local-one in us-central1 here, and acme-ml-dev in" in result.output
    assert not (programs / "calls").exists()


@pytest.mark.parametrize(
    ("body", "lacks"),
    [
        (b'{"errors":[{"code":"NAME_UNKNOWN","message":"Repository \'a\' not found"}]}', True),
        (b'{"errors":[{"code":"NAME_UNKNOWN","message":"repository name not known"}]}', False),
        (b'{"errors":[{"code":"MANIFEST_UNKNOWN","message":"repository not found"}]}', False),
        (b"<html>not found</html>", False),
        (b'{"errors": {"code": 1}}', False),
        (b"[" * 100_000, False),
    ],
)
def test_an_image_that_was_never_pushed_is_no_missing_repository(body, lacks):
    assert documents.lacks_repository(body) is lacks
