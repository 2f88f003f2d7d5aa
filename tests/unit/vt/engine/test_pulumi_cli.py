"""How ``pulumi`` is found and started, and what its JSON becomes."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from vertex_training.errors import CommandError
from vertex_training_cli.engine.events import make_plan
from vertex_training_cli.engine.pulumi_cli import PulumiCli

ROOT: Final = Path(__file__).parents[4]


def fake(folder: Path, script: str) -> PulumiCli:
    """A ``pulumi`` on PATH that runs ``script``."""
    (folder / "pulumi").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "pulumi").chmod(0o755)
    return PulumiCli(folder, {"PATH": f"{folder}:/bin"})


def test_a_program_that_cannot_be_started_is_one_line(tmp_path: Path) -> None:
    pulumi = fake(tmp_path, "")
    (tmp_path / "pulumi").write_text("#!/nowhere/sh\n")
    with pytest.raises(CommandError) as failed:
        pulumi.capture("up")
    text = f"{tmp_path / 'pulumi'}: No such file or directory."
    assert str(failed.value) == str(CommandError(text, "run `vt setup`"))


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


@pytest.mark.timeout(120)
def test_printed_command_repairs_a_stack_whose_passphrase_became_empty(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: x\nruntime: python\n")
    (tmp_path / "state").mkdir()
    tools = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    variables = {
        "HOME": str(tmp_path), "PULUMI_BACKEND_URL": f"file://{tmp_path}/state", "PATH": tools,
        "PULUMI_SKIP_UPDATE_CHECK": "true",
    }  # fmt: skip
    pulumi = PulumiCli(tmp_path, {**variables, "PULUMI_CONFIG_PASSPHRASE": "local"})
    empty = PulumiCli(tmp_path, {**variables, "PULUMI_CONFIG_PASSPHRASE": ""})
    assert empty.run_in_foreground("stack", "init", "dev", "--non-interactive") == 0
    refresh = ("refresh", "--stack", "dev", "--yes", "--skip-preview", "--non-interactive")
    assert pulumi.run_in_foreground(*refresh) != 0
    hint = capfd.readouterr().err
    [command] = re.findall(r"^  (printf .*)$", hint, re.MULTILINE)
    assert command in make_plan(pulumi, "dev").errors[0].message
    with pytest.raises(CommandError, match="incorrect passphrase") as failed:
        pulumi.read_json("preview", "--stack", "dev", "--json")
    assert command in str(failed.value)
    subprocess.run(command, shell=True, cwd=tmp_path, env=pulumi.env, check=True)
    assert pulumi.run_in_foreground(*refresh) == 0
    assert "passphrase" not in capfd.readouterr().err
