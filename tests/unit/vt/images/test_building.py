"""An image is built once, and pinned as a whole or not at all."""

import itertools
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from tests.fixture_project import source_path
from tests.unit.vt.images.conftest import write_stack
from vertex_training.errors import CommandError
from vertex_training_cli.images import building, documents

ROOT = Path(__file__).resolve().parents[4]
BUILD = ("images", "build", "--stack", "one", "--engine", "buildah")
PATH = "local-one/training-one/train"


def calls(programs, verb="build"):
    file = programs / "calls"
    lines = file.read_text().splitlines() if file.exists() else []
    return [int(line.split()[1]) for line in lines if line.split()[0] == verb]


def pinned(root, stack="one"):
    config = yaml.safe_load((root / f"Pulumi.{stack}.yaml").read_text())["config"]
    return config["vertex-training:images"]["train"]


def start(programs, *arguments):
    """``vt images build`` in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "vertex_training_cli.cli", *BUILD, *arguments],
        env={**os.environ, "PYTHONPATH": source_path(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def wait_for(condition, process=None, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert process is None or process.poll() is None, process.communicate()
        assert time.monotonic() < end, "did not happen"
        time.sleep(0.02)


def test_a_build_is_pinned_with_every_other_byte_as_it_was(vt, root, registry, programs):
    before = (root / "Pulumi.one.yaml").read_text()
    result = vt(*BUILD)
    assert result.exit_code == 0, result.output
    pin = pinned(root)
    assert registry.manifests[PATH, pin["builtFrom"]] == registry.manifests[PATH, pin["digest"]]
    added = f', digest: "{pin["digest"]}", builtFrom: "{pin["builtFrom"]}"'
    after = (root / "Pulumi.one.yaml").read_text()
    assert after == before.replace("{context: jobs/train", "{context: jobs/train" + added)
    assert f"train: built {pin['digest']}" in result.output
    assert list(root.glob(".Pulumi*")) == []


def test_an_unchanged_context_is_not_built_again(vt, root, registry, programs):
    vt(*BUILD)
    before = (root / "Pulumi.one.yaml").stat()
    result = vt(*BUILD)
    assert "train: unchanged sha256:" in result.output
    assert "vt: 0 builds" in result.output
    assert len(calls(programs)) == 1
    after = (root / "Pulumi.one.yaml").stat()
    assert (after.st_mtime_ns, after.st_ino) == (before.st_mtime_ns, before.st_ino)


def test_an_image_that_another_checkout_built_is_taken(vt, root, registry, programs):
    vt(*BUILD)
    first = pinned(root)
    (root / "Pulumi.one.yaml").write_text(
        (root / "Pulumi.one.yaml").read_text().replace(first["digest"], "sha256:" + "9" * 64)
    )
    result = vt(*BUILD)
    assert "train: found" in result.output
    assert pinned(root) == first
    assert len(calls(programs)) == 1


def test_edited_code_is_another_image_and_going_back_finds_the_first(vt, root, registry, programs):
    vt(*BUILD)
    first = pinned(root)
    code = root / "jobs" / "train" / "train.py"
    code.write_text("print(2)\n")
    vt(*BUILD)
    second = pinned(root)
    assert second["digest"] != first["digest"]
    assert second["builtFrom"] != first["builtFrom"]
    code.write_text("print(1)\n")
    vt(*BUILD)
    assert pinned(root) == first
    assert len(calls(programs)) == 2


def test_the_engine_gets_options_and_labels(vt, root, registry, programs):
    text = "{context: jobs/train, buildArgs: {CUDA: '12', B: a=b}, target: train}"
    from tests.unit.vt.images.conftest import write_stack

    write_stack(root, "one", "local-one", text)
    assert vt(*BUILD).exit_code == 0
    arguments = (programs / "arguments").read_text().splitlines()
    pairs = list(itertools.pairwise(arguments))
    for pair in (
        ("--platform", "linux/amd64"),
        ("--build-arg", "B=a=b"),
        ("--build-arg", "CUDA=12"),
        ("--target", "train"),
        ("--label", "org.opencontainers.image.title=train"),
        ("--label", "vertex-training.context=jobs/train"),
    ):
        assert pair in pairs
    assert "--isolation=chroot" in arguments


@pytest.mark.parametrize(
    ("mode", "line"),
    [
        ("fail", "buildah build ended with exit code 3"),
        ("refused", "denied: 403 Forbidden"),
        ("full", "no space left on device"),
        ("full", "Hint: a disk is full: free space, and run the command again"),
    ],
)
def test_a_failure_shows_the_last_lines_and_leaves_the_stack_file(
    vt, root, registry, programs, mode, line
):
    (programs / "mode").write_text(mode)
    before = (root / "Pulumi.one.yaml").read_bytes()
    result = vt(*BUILD)
    assert result.exit_code == 1
    assert line in result.output
    assert "  | STEP 29: context" in result.output
    assert len([x for x in result.output.splitlines() if x.startswith("  | ")]) == 20
    assert "\x1b" not in result.output
    assert (root / "Pulumi.one.yaml").read_bytes() == before
    assert registry.tags(PATH) == []
    (programs / "mode").write_text("ok")
    assert vt(*BUILD).exit_code == 0


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


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_the_build(root, registry, programs, number):
    (programs / "mode").write_text("wait")
    before = (root / "Pulumi.one.yaml").read_bytes()
    process = start(programs)
    wait_for(lambda: calls(programs), process)
    process.send_signal(number)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 130, output
    [pid] = calls(programs)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert (root / "Pulumi.one.yaml").read_bytes() == before


def test_two_builds_at_once_end_with_one_image(root, registry, programs):
    (programs / "mode").write_text("wait")
    both = [start(programs), start(programs)]
    firsts = [process.stdout.readline() for process in both]
    (programs / "go").touch()
    outputs = [process.communicate(timeout=60)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0], outputs
    assert len(calls(programs)) == 1
    assert sorted("waiting for it" in line for line in firsts) == [False, True]
    assert len({line for o in outputs for line in o.split() if line.startswith("sha256:")}) == 1


def test_two_machines_at_once_end_with_one_image(root, registry, programs, tmp_path, monkeypatch):
    """Locks are of one machine: elsewhere the tag decides, before the push."""
    (programs / "mode").write_text("wait")
    first = start(programs)
    wait_for(lambda: calls(programs), first)
    monkeypatch.setenv("VT_CACHE_DIR", str(tmp_path / "another machine"))
    second = start(programs)
    wait_for(lambda: len(calls(programs)) == 2, second)
    (programs / "go").touch()
    outputs = [process.communicate(timeout=60)[0] for process in (first, second)]
    assert [process.returncode for process in (first, second)] == [0, 0], outputs
    assert len(set(registry.tags(PATH))) == 1
    assert pinned(root)["digest"] == registry_digest(registry)


def registry_digest(registry):
    from tests.unit.vt.images.stand_in import digest

    [tag] = registry.tags(PATH)
    return digest(registry.manifests[PATH, tag][1])


def test_a_kill_between_the_steps_leaves_nothing_in_the_way(root, registry, programs):
    before = (root / "Pulumi.one.yaml").read_bytes()
    (programs / "mode").write_text("wait")
    process = start(programs)
    wait_for(lambda: calls(programs), process)
    process.kill()
    process.communicate()
    assert (root / "Pulumi.one.yaml").read_bytes() == before
    (programs / "go").touch()
    again = start(programs)
    output, _ = again.communicate(timeout=60)
    assert again.returncode == 0, output
    assert pinned(root)["digest"] == registry_digest(registry)


@pytest.mark.parametrize("side", ["before", "after"])
@pytest.mark.parametrize(
    "step",
    [
        "vertex_training_cli.images.registry.RegistryClient.digest_of",
        "vertex_training_cli.images.building._lock",
        "vertex_training_cli.images.building._write_archive",
        "vertex_training_cli.images.engines.commands._unpack",
        "vertex_training_cli.images.engines.processes.run",
        "vertex_training_cli.images.engines.commands.CommandEngine._push",
        "vertex_training_cli.images.stack_file.set_value",
        "vertex_training_cli.images.stack_file.os.fsync",
        "vertex_training_cli.images.stack_file.os.replace",
    ],
)
def test_killed_at_any_step_the_next_build_picks_up(vt, root, registry, programs, step, side):
    before = (root / "Pulumi.one.yaml").read_bytes()
    code = f"""
import os, pkgutil, sys
module, _, name = {step!r}.rpartition(".")
holder = pkgutil.resolve_name(module)
real = getattr(holder, name)
def killed(*arguments, **options):
    if {side!r} == "after":
        real(*arguments, **options)
    os.kill(os.getpid(), 9)
setattr(holder, name, killed)
from vertex_training_cli.cli import app
app({list(BUILD)!r})
"""
    env = {**os.environ, "PYTHONPATH": source_path(ROOT)}
    ran = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, check=False)
    assert ran.returncode == -signal.SIGKILL, ran.stderr
    after = (root / "Pulumi.one.yaml").read_bytes()
    assert after == before or pinned(root)["digest"] == registry_digest(registry)
    result = vt(*BUILD)
    assert result.exit_code == 0, result.output
    assert pinned(root)["digest"] == registry_digest(registry)
    assert len(calls(programs)) <= 2
    assert list(root.glob(".Pulumi*")) == []


def test_where_tags_are_immutable_the_second_push_takes_the_first_digest(
    vt, root, registry, programs, monkeypatch
):
    registry.immutable = True
    vt(*BUILD)
    first = pinned(root)
    from vertex_training_cli.images.registry import RegistryClient

    real, looks = RegistryClient.digest_of, []

    def late(self, path, reference):
        looks.append(reference)
        return None if len(looks) <= 3 else real(self, path, reference)

    monkeypatch.setattr(RegistryClient, "digest_of", late)
    result = vt(*BUILD)
    assert result.exit_code == 0, result.output
    assert len(calls(programs, "push")) == 2
    assert pinned(root) == first


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


def test_a_stack_file_that_is_a_link_stays_one(vt, root, registry, programs):
    (root / "Pulumi.one.yaml").rename(root / "real.yaml")
    (root / "Pulumi.one.yaml").symlink_to("real.yaml")
    assert vt(*BUILD).exit_code == 0
    assert (root / "Pulumi.one.yaml").is_symlink()
    assert pinned(root)["digest"].startswith("sha256:")


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


def test_without_any_engine_one_line_says_what_to_install(
    vt, root, registry, programs, monkeypatch
):
    monkeypatch.setenv("PATH", "/nowhere")
    result = vt("images", "build", "--stack", "one")
    assert result.exit_code == 1
    assert "no engine builds images here. Hint: install one of docker, podman" in result.output


def test_a_context_that_changes_while_it_is_read_is_not_built(
    vt, root, registry, programs, monkeypatch
):
    from vertex_training_cli.images import building

    real = building.identity.identity

    def edited_after(source, context):
        found = real(source, context)
        (root / "jobs" / "train" / "train.py").write_text("print(3)\n")
        return found

    monkeypatch.setattr(building.identity, "identity", edited_after)
    result = vt(*BUILD)
    assert result.exit_code == 1
    assert "changed while it was read" in result.output
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


@pytest.mark.parametrize("of_a_branch", [True, False])
def test_only_what_a_person_builds_leaves_layers_to_other_builds(
    vt, root, tmp_path, registry, monkeypatch, of_a_branch
):
    found = []

    def build_image(_settings, _name, _root, options):
        found.append(options.writes_cache)
        raise CommandError("seen")

    monkeypatch.setattr(building, "build_image", build_image)
    (root / "trusted").mkdir()
    for file in ("Pulumi.yaml", "Pulumi.one.yaml"):
        shutil.copy(root / file, root / "trusted" / file)
    vt(*BUILD, *(["--target-of", root / "trusted"] if of_a_branch else []))
    assert found == [not of_a_branch]


def test_the_stack_file_of_a_branch_is_no_link(vt, root, tmp_path, programs):
    trusted = tmp_path / "trusted"
    trusted.mkdir()
    (trusted / "Pulumi.yaml").write_text("name: vertex-training\nruntime: python\n")
    write_stack(trusted, "one", "local-one", "{context: jobs/train}")
    (root / "Pulumi.one.yaml").unlink()
    (root / "Pulumi.one.yaml").symlink_to(trusted / "Pulumi.one.yaml")
    result = vt("images", "build", "--stack", "one", "--target-of", trusted)
    assert result.exit_code == 2
    assert "Pulumi.one.yaml: is a link" in result.output
    assert not (programs / "calls").exists()


def test_without_a_repository_nothing_is_built(vt, root, registry, programs):
    registry.lacks_repository = True
    before = (root / "Pulumi.one.yaml").read_bytes()
    result = vt(*BUILD)
    assert result.exit_code == 1
    assert "there is no repository local-one/training-one to push to" in result.output
    assert "vt up --stack one" in result.output
    assert calls(programs) == []
    assert (root / "Pulumi.one.yaml").read_bytes() == before


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
