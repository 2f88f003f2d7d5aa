"""The ``pulumi`` of the local shell."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from localgcp.access import pulumi_shim as shim


def test_encryption_settings_are_dropped_and_nothing_else() -> None:
    text = (
        "# why\nsecretsprovider: k\nencryptionsalt: >-\n  v1:abc\n"
        "config:\n  a:encryptionsalt: kept\n  b:x: [1]\n"
    )
    kept = shim.without_encryption(text)
    assert kept == "# why\nconfig:\n  a:encryptionsalt: kept\n  b:x: [1]\n"


@pytest.mark.parametrize(
    ("line", "position", "has"),
    [
        ("--color never up --config-file x", 2, {"has_config_file"}),
        ("up --config-file=x", 0, {"has_config_file"}),
        ("up -h", 0, {"asks_help"}),
        ("up --help -s dev", 0, {"asks_help"}),
        ("up --client=x", 0, {"has_client"}),
        ("-C", -1, set()),
    ],
)
def test_flags_that_take_a_value_are_not_commands(line: str, position: int, has: set[str]) -> None:
    request = shim.Request(line.split())
    assert request.position == position
    kinds = ("has_config_file", "asks_help", "has_client")
    assert {kind for kind in kinds if getattr(request, kind)} == has


def test_the_stack_and_the_folder_are_the_last_ones_named() -> None:
    request = shim.Request(["-s", "one", "up", "-stwo", "-C/x", "--cwd", "/y", "-s"])
    assert (request.command, request.stack, request.cwd) == ("up", "", "/y")


def test_the_real_pulumi_is_the_first_one_that_is_not_the_shells(tmp_path: Path) -> None:
    for name in ("own", "plain", "first", "second"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "pulumi").touch(0o644 if name == "plain" else 0o755)
    (tmp_path / "link").symlink_to("own")
    own = str(tmp_path / "own")
    places = [tmp_path / name for name in ("own", "link", "none", "plain", "first", "second")]
    path = os.pathsep.join(["", *map(str, places)])
    assert shim.real_pulumi(own, path) == str(tmp_path / "first" / "pulumi")
    assert shim.real_pulumi(own, own) is None
    assert shim.real_pulumi(own, "") is None


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("name: demo\n", "demo"),
        ('runtime: python\nname: "a-b.c"\n', "a-b.c"),
        ("name : 'x'\n", "x"),
        ("  name: inner\n", None),
        ("runtime: python\n", None),
    ],
)
def test_a_project_is_what_its_file_is_called_by(
    tmp_path: Path, text: str, name: str | None
) -> None:
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    (tmp_path / "Pulumi.yaml").write_text(text)
    found = (str(tmp_path), name) if name else None
    assert shim.find_project(str(below)) == shim.find_project(str(tmp_path)) == found


@pytest.mark.parametrize(
    "content",
    [None, "", "[]", "{}", '{"checkpoint": null}', '{"checkpoint": {"latest": {}}}'],
)
def test_a_stack_without_a_state_has_no_salt(tmp_path: Path, content: str | None) -> None:
    folder = tmp_path / "pulumi/.pulumi/stacks/demo"
    folder.mkdir(parents=True)
    if content is not None:
        (folder / "dev.json").write_text(content)
    assert shim.salt_of(str(tmp_path), "demo", "dev") is None


def test_the_stack_that_a_variable_names_is_selected_and_else_the_one_of_the_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "pulumi"

    def says(script: str) -> str | None:
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        return shim.selected_stack(str(program), "/x")

    monkeypatch.delenv("PULUMI_STACK", raising=False)
    wanted = '[ "$*" = "-C /x stack --show-name --non-interactive" ] || exit 1'
    assert says(f"{wanted}; echo ' dev'") == "dev"
    assert says("echo dev; exit 3") is None
    assert says("echo") is None
    monkeypatch.setenv("PULUMI_STACK", "named")
    assert says("echo dev") == "named"


@pytest.mark.parametrize(
    ("words", "passphrase", "code"),
    [
        ("stack change-secrets-provider passphrase -s dev", "local", 1),
        ("stack -C x change-secrets-provider gcpkms://k", "local", 1),
        ("stack change-secrets-provider passphrase", "", 0),  # repairs one that became empty
        ("stack change-secrets-provider --help", "local", 0),
        ("stack ls", "local", 0),
        ("config set change-secrets-provider x", "local", 0),
    ],
)
def test_passphrase_of_a_local_stack_is_kept(
    tmp_path: Path, words: str, passphrase: str, code: int
) -> None:
    (tmp_path / "pulumi").symlink_to("/bin/true")
    env = {"PATH": str(tmp_path), "VT_LOCAL_HOME": str(tmp_path / "home")}
    command = [sys.executable, str(shim.__file__), *words.split()]
    done = subprocess.run(
        command, env=env | {"PULUMI_CONFIG_PASSPHRASE": passphrase}, cwd=tmp_path,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == code
    assert ("would make this local stack unreadable" in done.stderr) is (code == 1)
