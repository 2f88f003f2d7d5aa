"""What a workflow hands to ``make`` in a variable is text: neither make nor the shell runs it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[2]
TEMPLATE: Final = ROOT / "cli/vertex_training_cli/init/templates/makefile.j2"


@pytest.fixture(params=["this repository", "one that vt init makes"])
def makefile(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    if request.param == "this repository":
        return ROOT / "Makefile"
    written = tmp_path / "Makefile"
    text = TEMPLATE.read_text().replace("[[ answers.first.name ]]", "dev")
    written.write_text("\n".join(line for line in text.split("\n") if "[%" not in line))
    return written


def run(makefile: Path, folder: Path, verb: str, **variables: str) -> list[str]:
    """Run a verb with a stand-in for `vt`; the arguments it got."""
    tools = folder / "tools-of-the-test"
    tools.mkdir()
    (tools / "vt").write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >>{folder}/arguments\n')
    (tools / "vt").chmod(0o755)
    environment = {**os.environ, **variables}
    command = ["make", "-f", str(makefile), "-o", "setup", "-o", ".venv/ready-dev"]
    subprocess.run(
        [*command, f"BIN={tools}", verb], cwd=folder, env=environment, check=False,
        capture_output=True, timeout=60,
    )  # fmt: skip
    arguments = folder / "arguments"
    return arguments.read_text().splitlines() if arguments.exists() else []


def test_the_record_of_an_approval_is_not_expanded(makefile: Path, tmp_path: Path) -> None:
    record = '{"settings": {"gcp:userProjectOverride": "$(shell touch PWNED)"}}'
    arguments = run(makefile, tmp_path, "deploy", STACK="dev", VT_APPROVAL=record)
    assert not (tmp_path / "PWNED").exists()
    assert arguments[:3] == ["deploy", "--stack", "dev"]
    assert "--approval" not in arguments
