"""Command lines of ``tests/corpus/sessions`` print what is recorded there, and end with its code.

A case has files and a session: lines ``$ COMMAND``, each followed by its output and, unless it is
0, its exit code in brackets. ``vt`` runs in this process and anything else in a shell; the output
of ``vt`` may be reduced by ``2>/dev/null``, ``>/dev/null``, ``2>&1`` and a pipe. With
``terminal``, standard input (``<FILE``) is a person's. ``$ registry add PATH TAG`` calls a
fixture. Digests of images are numbered, and seconds are N. ``RECORD=1`` (and ``-n 0``) writes
outputs anew: read the difference before you commit it.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from typer.testing import CliRunner

from tests.unit.vt.data.stand_in import bucket, front, home, objects
from tests.unit.vt.images.conftest import programs, registry
from vertex_training_cli.cli import app

__all__ = ["bucket", "front", "home", "objects", "programs", "registry"]

FOLDER: Final = Path(__file__).parents[2] / "corpus" / "sessions"
CORPUS: Final = {file: yaml.safe_load(file.read_text()) for file in sorted(FOLDER.glob("*.yaml"))}
CASES: Final = [(file, name) for file, verb in CORPUS.items() for name in verb["cases"]]
DIGEST: Final = re.compile(r"sha256:(?!(.)\1{63})[0-9a-f]{64}")
SHORTENED: Final = re.compile(r"(.*?)(?: <(\S+))?(?: (2?>/dev/null|2>&1))?(?: \| (.*))?")


class Block(yaml.SafeDumper):
    """Writes a text of several lines as a block."""


Block.add_representer(
    str,
    lambda dumper, text: dumper.represent_scalar(
        "tag:yaml.org,2002:str", text, style="|" if "\n" in text else None
    ),
)


def put(root: Path, files: dict[str, str | None]) -> None:
    for name, text in files.items():
        if text is None:
            (root / name).unlink()
            continue
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def run(line: str) -> tuple[str, int]:
    """Return the output and the exit code of a command line."""
    if not line.startswith("vt "):
        ended = subprocess.run(line, shell=True, stdout=-1, stderr=-2, check=False)
        return ended.stdout.decode(), ended.returncode
    shortened = SHORTENED.fullmatch(line)
    assert shortened is not None
    words, source, stream, pipe = shortened.groups()
    given = Path(source).read_text() if source else ""
    done = CliRunner().invoke(app, shlex.split(words)[1:], input=given)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exc_info
    output = {"2>/dev/null": done.stdout, ">/dev/null": done.stderr}.get(stream, done.output)
    if pipe:
        given = done.output if stream == "2>&1" else done.stdout
        ended = subprocess.run(["bash", "-c", pipe], input=given.encode(), stdout=-1, check=False)
        output = (done.stderr if stream is None else "") + ended.stdout.decode()
    return output, done.exit_code


def numbered(text: str) -> str:
    """Return the text with a number for each digest of an image."""
    for number, digest in enumerate(dict.fromkeys(m[0] for m in DIGEST.finditer(text)), 1):
        text = text.replace(digest, f"DIGEST-{number}")
        text = text.replace(f"digest-{digest[7:39]}", f"digest-OF-{number}")
        text = text.replace(digest[7:19], f"DIGEST-{number}")
    text = re.sub(r" in [0-9]+\.[0-9] s$", " in N s", text, flags=re.MULTILINE)
    return re.sub(r'(?<="generation": )[0-9]+|20[0-9-]{8} [0-9:]{8}', "N", text)


def played(
    session: str, names: dict[str, str], fixtures: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> str:
    """Return the session with the output of each command as it is now."""
    lines = list[str]()
    for line in session.splitlines():
        if not line.startswith("$ "):
            continue
        output, code = "", 0
        if line.startswith("$ cd "):
            monkeypatch.chdir(line[5:])
        elif line.startswith("$ export "):
            variable, _, value = line[9:].partition("=")
            monkeypatch.setenv(variable, value)
        elif (words := shlex.split(line[2:]))[0] in fixtures:
            output = f"{getattr(fixtures[words[0]], words[1])(*words[2:]) or ''}"
        else:
            output, code = run(line[2:])
        for value, name in names.items():
            output = output.replace(value, name)
        shown = [each.rstrip() for each in output.expandtabs().split("\n")]
        lines += [line, *shown[:-1], *filter(None, shown[-1:]), *([f"[{code}]"] if code else [])]
    return numbered("\n".join(lines) + "\n")


@pytest.mark.parametrize(
    ("file", "name"), CASES, ids=[f"{file.stem}: {name}" for file, name in CASES]
)
def test_command_prints_its_recorded_output(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    file: Path, name: str,
) -> None:  # fmt: skip
    verb = CORPUS[file]
    case: dict[str, Any] = verb["cases"][name]
    root = tmp_path / "project"
    root.mkdir()
    fixtures = {name: request.getfixturevalue(name) for name in verb.get("fixtures", [])}
    put(root, (verb["files"] if case.get("project", True) else {}) | case.get("files", {}))
    monkeypatch.chdir(root)
    monkeypatch.setenv("COLUMNS", "100")
    if case.get("terminal"):
        stdin = "typer.testing._NamedTextIOWrapper.isatty"
        monkeypatch.setattr(stdin, lambda stream: stream.name == "<stdin>")
    for key, value in {"VT_CACHE_DIR": "cache", "VT_LOCAL_HOME": "home"}.items():
        monkeypatch.setenv(key, str(tmp_path / value))
    names = {str(root): "PROJECT", str(tmp_path): "TMP", version("vertex-training"): "VERSION"}
    if "registry" in fixtures:
        names |= {fixtures["registry"].address: "REGISTRY"}
    session = played(case["session"], names, fixtures, monkeypatch)
    if os.environ.get("RECORD"):
        case["session"] = session
        file.write_text(
            yaml.dump(verb, Dumper=Block, sort_keys=False, width=100, allow_unicode=True)
        )
    assert session == case["session"]
