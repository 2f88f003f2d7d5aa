"""A shell completes commands, options, and names from the files that have them."""

import os
import shutil
import subprocess
import sys

import pytest
from typer.completion import get_completion_inspect_parameters
from typer.testing import CliRunner

from vertex_training_cli.cli import app
from vertex_training_cli.help import completion

#: The command of an installed ``vt``, which may not be on PATH here.
VT = "import sys; sys.argv = ['vt']; from vertex_training_cli.cli import app; app()"
STACK = """\
config:
  gcp:project: local-demo
  vertex-training:buckets: {data: {}}
  vertex-training:images: {busy: {uri: x}}
  vertex-training:jobs: {titanic: {file: jobs/titanic.yaml}, tune: {file: jobs/tune.yaml}}
  vertex-training:models: {m: {}}
  vertex-training:endpoints: {e: {}}
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    (tmp_path / "Pulumi.yaml").write_text("name: demo\nruntime: python\n")
    (tmp_path / "Pulumi.local.yaml").write_text(STACK)
    (tmp_path / "Pulumi.dev.yaml").write_text(STACK.replace("titanic", "ship"))
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    return tmp_path


def asked(line):
    """What a shell sets at the end of ``line``."""
    last = str(len(line.split(" ")) - 1)
    return {"_VT_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": last}


def completed(line, **variables):
    """What bash is offered at the end of ``line``."""
    get_completion_inspect_parameters()
    env = {"PULUMI_STACK": None, **asked(line), **variables}
    done = CliRunner().invoke(app, [], env=env, prog_name="vt", catch_exceptions=False)
    assert done.stderr == ""
    return done.stdout.split()


def test_a_process_that_a_shell_starts_completes_its_line(project):
    env = os.environ | asked("vt jobs show --stack dev s")
    done = subprocess.run(
        [sys.executable, "-c", VT], env=env, capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("ship\n", "")


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("vt che", ["check"]),
        ("vt jobs show ", ["titanic", "tune"]),
        ("vt jobs show --stack dev s", ["ship"]),
        ("vt check --stack ", ["dev", "local"]),
        ("vt diff d", ["dev"]),
        ("vt promote --from d", ["dev"]),
    ],
)
def test_names_are_those_of_the_files(project, line, names):
    assert completed(line) == names


def test_names_are_of_the_selected_stack(project):
    assert completed("vt jobs show ", PULUMI_STACK="dev") == ["ship", "tune"]
    assert completed("vt jobs show --stack local ", PULUMI_STACK="dev") == ["titanic", "tune"]


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
