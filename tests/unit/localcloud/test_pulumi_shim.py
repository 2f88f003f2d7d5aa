"""The ``pulumi`` of the local shell."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

import pytest

from localgcp import pulumi_shim as shim
from localgcp.access import engine_network
from localgcp.home import Home

CLOUD_KEY = "gcpkms://projects/p/locations/l/keyRings/r/cryptoKeys/k"
COMMITTED = f"secretsprovider: {CLOUD_KEY}\nencryptedkey: abc\nconfig:\n  gcp:project: acme\n"


def test_encryption_settings_are_dropped_and_nothing_else() -> None:
    text = (
        "# why\nsecretsprovider: k\nencryptionsalt: >-\n  v1:abc\n"
        "config:\n  a:encryptionsalt: kept\n  b:x: [1]\n"
    )
    kept = shim.without_encryption(text)
    assert kept == "# why\nconfig:\n  a:encryptionsalt: kept\n  b:x: [1]\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "checkout"
    folder.mkdir()
    (folder / "Pulumi.yaml").write_text("name: demo\nruntime: python\n")
    (folder / "Pulumi.dev.yaml").write_text(COMMITTED)
    return folder


@pytest.fixture
def engine(tmp_path: Path) -> Path:
    """A ``pulumi`` that makes stacks as the file backend does, and else prints its arguments."""
    program = tmp_path / "real" / "pulumi"
    program.parent.mkdir()
    script = tmp_path / "pulumi.py"
    # Not as the first line of the script: a path there may not hold spaces.
    command = shlex.join([sys.executable, str(script)])
    program.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
    script.write_text(
        "import json, os, sys\n"
        "args = sys.argv[1:]\n"
        "if 'init' in args:\n"
        "    home, stack = os.environ['VT_LOCAL_HOME'], args[args.index('init') + 1]\n"
        "    assert 'name: demo' in open(args[args.index('-C') + 1] + '/Pulumi.yaml').read()\n"
        "    folder = home + '/pulumi/.pulumi/stacks/demo'\n"
        "    os.makedirs(folder, exist_ok=True)\n"
        "    salt = {'secrets_providers': {'state': {'salt': 'v1:salt'}}}\n"
        "    with open(f'{folder}/{stack}.json', 'w') as file:\n"
        "        json.dump({'checkpoint': {'latest': salt}}, file)\n"
        "elif '--show-name' in args:\n"
        "    print('dev')\n"
        "else:\n"
        "    print(json.dumps(args))\n"
        "    sys.exit(7)\n"
    )
    program.chmod(0o755)
    return program


def test_a_second_stack_of_a_project_is_made_beside_the_first(home: Home, engine: Path) -> None:
    env = {**os.environ, "VT_LOCAL_HOME": str(home.root)}
    for stack in ("one", "two"):
        assert shim.make_stack(str(engine), str(home.stacks / "demo"), "demo", stack, env) == ""
    for stack in ("one", "two"):
        assert shim.salt_of(str(home.root), "demo", stack) == "v1:salt"


@pytest.mark.parametrize(
    ("args", "network", "entered"),
    [
        (["up", "--exec-agent=127.0.0.1:4000"], None, {4000, 4711}),
        (["-C", "x", "destroy", "localhost:1", "grpc://localhost:65535/x"], None, {1, 65535, 4711}),
        (["preview", "-h"], None, None),
        ([], None, None),
        (["up", "--client=127.0.0.1:4000"], None, None),
        (["up", "--help"], None, None),
    ],
)
def test_what_loads_a_program_gets_a_network_with_the_ports_that_it_names(
    monkeypatch: pytest.MonkeyPatch, args: list[str], network: str | None, entered: set[int] | None
) -> None:
    calls: list[set[int]] = []
    monkeypatch.setattr(engine_network, "enter", calls.append)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(sys, "path", [*sys.path])
    variables = {"STORAGE_EMULATOR_HOST": "http://127.0.0.1:4711", "FAR": "http://10.0.0.1:80"}
    variables |= {"WRONG": "127.0.0.1:99999"} | ({"VT_LOCAL_NETWORK": network} if network else {})
    for name in [*os.environ]:
        monkeypatch.delenv(name)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    shim.enter_network(args)
    assert calls == ([] if entered is None else [entered])
    monkeypatch.setattr(sys, "platform", "darwin")
    shim.enter_network(args)
    assert len(calls) == (entered is not None)


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


def test_above_the_top_there_is_no_project() -> None:
    assert shim.find_project("/") is None


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


@pytest.mark.parametrize("in_shell", [True, False])
def test_the_shim_becomes_the_real_pulumi(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_shell: bool
) -> None:
    became: list[object] = []
    real = tmp_path / "real" / "pulumi"
    real.parent.mkdir()
    real.touch(0o755)
    monkeypatch.setattr(os, "execv", lambda *words: became.append(words))
    monkeypatch.setattr(sys, "argv", ["pulumi", "version"])
    monkeypatch.setattr(shim, "enter_network", became.append)
    monkeypatch.setenv("PATH", str(real.parent))
    monkeypatch.delenv("VT_LOCAL_HOME", raising=False)
    if in_shell:
        monkeypatch.setenv("VT_LOCAL_HOME", str(tmp_path))
    shim.main()
    assert became == [*([["version"]] if in_shell else []), (str(real), [str(real), "version"])]
