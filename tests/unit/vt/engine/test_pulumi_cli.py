"""How ``pulumi`` is found and started, and what its JSON becomes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from vertex_training.errors import CommandError
from vertex_training_cli.engine.pulumi_cli import BACKEND, PulumiCli

ROOT: Final = Path(__file__).parents[4]


def fake(folder: Path, script: str) -> PulumiCli:
    """A ``pulumi`` on PATH that runs ``script``."""
    (folder / "pulumi").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "pulumi").chmod(0o755)
    return PulumiCli(folder, {"PATH": f"{folder}:/bin"})


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo ' error: no stack' >&2; echo printed; exit 255", "error: no stack"),
        ("echo ' printed alone'; exit 1", "printed alone"),
        ("echo password=hunter2hunter2 >&2; exit 1", "password=[secret]"),
        ("exit 7", ""),
    ],
)
def test_a_command_that_fails_is_quoted(tmp_path: Path, script: str, said: str) -> None:
    with pytest.raises(CommandError) as failed:
        fake(tmp_path, script).read_json("stack", "export")
    assert str(failed.value) == str(CommandError(f"`pulumi stack export` failed: {said}"))


def test_a_program_that_cannot_be_started_is_one_line(tmp_path: Path) -> None:
    pulumi = fake(tmp_path, "")
    (tmp_path / "pulumi").write_text("#!/nowhere/sh\n")
    with pytest.raises(CommandError) as failed:
        pulumi.capture("up")
    text = f"{tmp_path / 'pulumi'}: No such file or directory."
    assert str(failed.value) == str(CommandError(text, "`vt setup`"))


def test_a_command_in_the_foreground_has_the_arguments_alone(tmp_path: Path) -> None:
    pulumi = fake(tmp_path, 'echo "$(pwd) $HERE $@" > asked; exit 3')
    env = {**pulumi.env, "HERE": "x"}
    assert PulumiCli(tmp_path, env).run_in_foreground("up", "--yes") == 3
    assert (tmp_path / "asked").read_text() == f"{tmp_path} x up --yes\n"


@pytest.mark.parametrize(
    ("exported", "deployment"),
    [('{"deployment": {"resources": []}}', {"resources": []}), ('{"deployment": null}', {})],
)
def test_a_stack_without_a_deployment_has_an_empty_one(
    tmp_path: Path, exported: str, deployment: dict[str, object]
) -> None:
    pulumi = fake(tmp_path, f"echo '{exported}'")
    assert pulumi.export_deployment("dev") == deployment


def test_the_backend_is_the_one_of_the_environment_else_the_one_of_the_login(
    tmp_path: Path,
) -> None:
    pulumi = fake(tmp_path, 'echo \'{"url": "gs://login"}\'')
    assert pulumi.backend_url() == "gs://login"
    assert PulumiCli(tmp_path, {**pulumi.env, BACKEND: "gs://state"}).backend_url() == "gs://state"


def test_what_pulumi_prints_is_utf_8_in_every_locale(tmp_path: Path) -> None:
    pulumi = fake(tmp_path, 'echo \'{"url": "file:///büro"}\'')
    script = (
        "import sys; from pathlib import Path; "
        "from vertex_training_cli.engine.pulumi_cli import PulumiCli; "
        "print(ascii(PulumiCli(Path(sys.argv[1]), {'PATH': sys.argv[2]}).backend_url()))"
    )
    printed = subprocess.run(
        [sys.executable, "-X", "utf8=0", "-c", script, tmp_path, pulumi.env["PATH"]],
        cwd=ROOT, env={"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"},
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    assert printed == "'file:///b\\xfcro'\n"
