"""How ``pulumi`` is found and started, and what its JSON becomes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from vertex_training.errors import CommandError
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
    assert str(failed.value) == str(CommandError(text, "`vt setup`"))


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
