"""A shell completes commands, options, and names from the files that have them."""

import os
import shutil
import subprocess
import sys

import pytest

from vertex_training_cli.help import completion

#: The command of an installed ``vt``, which may not be on PATH here.
VT = "import sys; sys.argv = ['vt']; from vertex_training_cli.cli import app; app()"
STACK = """\
config:
  gcp:project: local-demo
  vertex-training:buckets: {data: {}}
  vertex-training:images: {busy: {uri: x}}
  vertex-training:jobs: {titanic: {file: jobs/titanic.yaml}, tune: {file: jobs/tune.yaml}}
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    (tmp_path / "Pulumi.yaml").write_text("name: demo\nruntime: python\n")
    (tmp_path / "Pulumi.local.yaml").write_text(STACK)
    (tmp_path / "Pulumi.dev.yaml").write_text(STACK.replace("titanic", "ship"))
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    return tmp_path


def completed(line):
    """What bash is offered at the end of ``line``."""
    env = {k: v for k, v in os.environ.items() if k != "PULUMI_STACK"}
    words = line.split(" ")
    env |= {"_VT_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    done = subprocess.run(
        [sys.executable, "-c", VT], env=env, capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("vt che", ["check"]),
        ("vt jobs show ", ["titanic", "tune"]),
        ("vt jobs show --stack dev s", ["ship"]),
        ("vt check --stack ", ["dev", "local"]),
        ("vt diff d", ["dev"]),
        ("vt promote --from d", ["dev"]),
        ("vt images build b", ["busy"]),
        ("vt data push d", ["data"]),
        ("vt jobs logs --fol", ["--follow"]),
        ("vt import ", []),
    ],
)
def test_names_are_those_of_the_files(project, line, names):
    assert completed(line) == names


def test_a_stack_file_that_cannot_be_read_completes_nothing(project):
    for text in (b"\xff", b"config: [", b"config: {}", b"", b"config: {vertex-training:jobs: 3}"):
        (project / "Pulumi.local.yaml").write_bytes(text)
        assert completion.keys(project, "local", "jobs") == []
    assert completion.keys(project, "absent", "jobs") == []
    assert completion.keys(project, "../other", "jobs") == []


def test_there_is_nothing_to_complete_outside_of_a_project(tmp_path):
    assert completion.stacks(tmp_path) == []
    assert completion.keys(tmp_path, "local", "jobs") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_gets_its_script_by_the_documented_line(shell):
    env = {**os.environ, "_VT_COMPLETE": f"source_{shell}"}
    done = subprocess.run(
        [sys.executable, "-c", VT],
        env=env,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "_VT_COMPLETE" in done.stdout
    if found := shutil.which(shell):
        subprocess.run([found, "-n"], input=done.stdout, text=True, check=True)
