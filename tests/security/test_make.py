"""Tests that ``make`` and the shell do not execute text that a workflow passes in a variable."""

from __future__ import annotations

import os
import re
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
    """Run a verb with a stand-in for `vt`; return the arguments that it received."""
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


def test_approval_record_is_not_expanded_by_make(makefile: Path, tmp_path: Path) -> None:
    record = '{"settings": {"gcp:userProjectOverride": "$(shell touch PWNED)"}}'
    arguments = run(makefile, tmp_path, "deploy", STACK="dev", VT_APPROVAL=record)
    assert not (tmp_path / "PWNED").exists()
    assert arguments[:3] == ["deploy", "--stack", "dev"]
    assert "--approval" not in arguments


#: Left by a command of the attacker.
MARK: Final = "PWNED"
PAYLOADS: Final = (
    f"dev;touch {MARK}",
    f"dev `touch {MARK}` $(touch {MARK})",
    f"dev' ; touch {MARK} ; '",
    f'dev" & touch {MARK} & "',
    f"dev\ntouch {MARK}\n'\ntouch {MARK}",
    f"$(shell touch {MARK})",
    f"$(touch {MARK})${{IFS}}|touch {MARK}",
)
#: Names programs, so it may name any.
PROGRAMS: Final = {"PYTHON", "BIN"}
#: Set by make itself.
OF_MAKE: Final = {"MAKEFILE_LIST", "MAKECMDGOALS"}


def variables_of(makefile: Path) -> list[str]:
    """Return variables that a user may set: the makefile uses but does not assign them."""
    text = re.sub(r"^\s*#.*", "", makefile.read_text(), flags=re.MULTILINE)
    used = set(re.findall(r"\$\$?[({]?(?:value )?([A-Z][A-Z_]*)\b", text))
    own = set(re.findall(r"^([A-Z_]+) :?= ", text, re.MULTILINE))
    return sorted(used - own - PROGRAMS - {"PWD", "HOME", "PATH", "CURDIR", *OF_MAKE})


def verbs_of(makefile: Path) -> list[str]:
    return re.findall(r"^([a-z-]+):", makefile.read_text(), re.MULTILINE)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder in which each program of a verb is a stub."""
    made = tmp_path / "checkout"
    names = ["report", "run-tests", "images-request", "images-comment", "python3"]
    programs = re.findall(r"\$\(BIN\)/([a-z-]+)", (ROOT / "Makefile").read_text())
    for name in [*(f"tools/{each}" for each in names), *(f".venv/bin/{p}" for p in programs)]:
        file = made / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("#!/bin/sh\n")
        file.chmod(0o755)
    for name in ("requirements.txt", "requirements-dev.txt", "requirements.lock"):
        (made / name).touch()
    return made


def test_variables_of_the_makefile_are_listed(makefile: Path) -> None:
    assert {"STACK", "REFRESH", "DEPLOY", "ARGS", "FLAGS", "DIGEST"} <= set(variables_of(makefile))


@pytest.mark.parametrize("payload", PAYLOADS)
def test_variable_of_a_verb_is_not_executed(makefile: Path, folder: Path, payload: str) -> None:
    given = dict.fromkeys(variables_of(makefile), payload)
    words = [f"{name}={value}" for name, value in given.items()]
    command = ["make", "-f", str(makefile), "PYTHON=./tools/python3", "MAKE_TERMOUT="]
    for verb in verbs_of(makefile):
        if verb == "clean":
            continue
        for extra, env in ((words, {}), ([], given)):
            subprocess.run(
                [*command, *extra, verb], cwd=folder, env={**os.environ, **env}, check=False,
                capture_output=True, timeout=60,
            )  # fmt: skip
            assert not list(folder.rglob(MARK)), (verb, "command line" if extra else "environment")


def test_arguments_reach_the_command_unchanged(makefile: Path, tmp_path: Path) -> None:
    arguments = run(makefile, tmp_path, "up", STACK="dev", ARGS="--yes --message it's;$x")
    assert arguments[:3] == ["up", "--stack", "dev"]
    assert arguments[-3:] == ["--yes", "--message", "it's;$x"]


@pytest.mark.parametrize("verb", ["report", "preview", "comment", "deploy", "drift"])
def test_output_of_a_verb_is_not_a_runner_command(
    makefile: Path, tmp_path: Path, verb: str
) -> None:
    command = ["make", "-n", "-f", str(makefile), "-o", "setup", "-o", ".venv/ready-dev", verb]

    def first_line(actions: str) -> str:
        env = {**os.environ, "STACK": "dev", "GITHUB_ACTIONS": actions}
        done = subprocess.run(
            command, cwd=tmp_path, env=env, check=False, capture_output=True, text=True, timeout=60
        )
        return done.stdout.split("\n", 1)[0]

    told = {first_line("true") for _ in range(2)}
    assert len(told) == 2
    assert all(re.fullmatch("::stop-commands::[0-9a-f]{32}", line) for line in told)
    assert "::" not in first_line("")
