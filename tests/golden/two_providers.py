"""What each stack registers under the pulumi-gcp that is pinned, and under 10.2: is it the same?

    .venv/bin/python -m tests.golden.two_providers

Prints a row for each stack: the fixtures, those of bootstrap, all golden changes that edit files
alone, two with what no other has, and the programs of docs/examples. Exits 1 if an input differs.
No engine, no cloud; 10.2 is installed once, by hash, into a folder that goes first on the path.
"""

from __future__ import annotations

import asyncio
import json
import os
import runpy
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pulumi
import pulumi_gcp

from tests.fixture_project import PROJECT, ROOT
from tests.golden import registered
from tests.golden.changes import JOB, LARGE_JOB, LARGE_STACK, LIVE, RECORDED, STACK, Change
from tests.unit.bootstrap import recorder as bootstrap
from tests.unit.infra.recorder import Recorder
from tests.unit.infra.recorder import registered as of_fixture
from tests.unit.infra.stacks import HOST, HOST_NETWORK, PSC
from vertex_training.errors import ConfigError

PIN: Final = Path(__file__).with_name("pulumi-gcp-10.txt")
#: Stacks with what no other has.
REST: Final[Mapping[str, Any]] = {
    "nat-and-tensorboard": {"network": {**PSC, "nat": True}, "tensorboard": "training"},
    "shared-vpc-host": {
        "network": {**PSC, "existing": HOST_NETWORK},
        "sharedVpc": {**HOST, "enableHost": True},
    },
}
OTHER: Final = ROOT / ".build" / "pulumi-gcp-10"
#: A stack by name -> type of each resource and its inputs, by the resource's name.
Stacks = Mapping[str, Mapping[str, Any]]


def stacks(folder: Path) -> Iterator[tuple[str, Callable[[], Mapping[str, Any]]]]:
    """Name of each stack, and what registers it; files are written below ``folder``."""
    for file in sorted(PROJECT.glob("Pulumi.*.yaml")):
        name = file.name.split(".")[1]
        yield name, lambda name=name: of_fixture(name)
    for name, sections in REST.items():
        yield name, lambda sections=sections: of_fixture("dev", **sections)
    for name in ("local", "dev", "prod"):
        yield f"bootstrap {name}", lambda name=name: _bootstrap(name)
    for base, changes in (((STACK, JOB), LIVE), ((LARGE_STACK, LARGE_JOB), RECORDED)):
        for name, change in changes.items():
            if not change.program:
                yield name, lambda c=change, n=name, b=base: _changed(c, folder / n, b)
    for example in sorted((ROOT / "docs/examples").glob("*/python/__main__.py")):
        yield example.parts[-3], lambda example=example: _example(example)


def _bootstrap(stack: str) -> Mapping[str, Any]:
    found = bootstrap.registered(stack)
    return {name: (inputs.pop("type"), inputs) for name, inputs in found.items()}


def _changed(change: Change, folder: Path, base: tuple[str, str]) -> Mapping[str, Any]:
    folder.mkdir()
    return registered.with_types(change, folder, *base)


def _example(program: Path) -> Mapping[str, Any]:
    recorder = Recorder()
    asyncio.set_event_loop(asyncio.new_event_loop())
    pulumi.runtime.set_mocks(recorder, "acme", "dev", preview=True)
    pulumi.runtime.test(lambda: runpy.run_path(str(program)))()
    return recorder.registered


def record() -> Stacks:
    """All stacks, as this process's pulumi-gcp registers them."""
    with tempfile.TemporaryDirectory() as folder:
        found = {}
        for name, register in stacks(Path(folder)):
            with suppress(ConfigError):  # a change that the rules refuse registers nothing
                found[name] = register()
        return json.loads(json.dumps(found, default=_text).replace(folder, "FOLDER"))


def _text(value: Any) -> str:
    """An asset is what it is made of."""
    return f"{type(value).__name__} {getattr(value, 'path', '')}"


def record_under(*folders: Path) -> tuple[str, Stacks]:
    """Version of the pulumi-gcp in the folder, or of the pinned one, and what it registers."""
    path = os.pathsep.join((*map(str, folders), *(entry for entry in sys.path if entry)))
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.golden.two_providers", "--record"],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": path}, text=True, capture_output=True,
        check=False,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(done.stderr)
    found = json.loads(done.stdout.splitlines()[-1])
    return found["version"], found["stacks"]


def install() -> Path:
    """Folder with the other pulumi-gcp, installed by hash if it is not there."""
    if not (OTHER / "pulumi_gcp").is_dir():
        command = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--no-deps"]
        command += ["--require-hashes", "-r", str(PIN), "--target", str(OTHER)]
        subprocess.run(command, check=True)
    return OTHER


def differences(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> list[str]:
    """Each resource, and each input, that two records of a stack do not share."""
    told = [f"{name}: in one of them" for name in sorted(ours.keys() ^ theirs.keys())]
    for name in sorted(ours.keys() & theirs.keys()):
        one, other = dict(ours[name][1]), dict(theirs[name][1])
        one["(type)"], other["(type)"] = ours[name][0], theirs[name][0]
        keys = sorted(one.keys() | other.keys())
        told += [
            f"{name}.{key}: {one.get(key)!r}, then {other.get(key)!r}"
            for key in keys
            if one.get(key) != other.get(key)
        ]
    return told


def main() -> int:
    """The table. Exit code 1 if an input differs."""
    if "--record" in sys.argv[1:]:
        plugin = json.loads(Path(pulumi_gcp.__file__).with_name("pulumi-plugin.json").read_text())
        print(json.dumps({"version": plugin["version"], "stacks": record()}))
        return 0
    (pinned, ours), (other, theirs) = record_under(), record_under(install())
    print(f"{'stack':26} resources  inputs  differ between {pinned} and {other}")
    found = []
    for name in sorted(ours.keys() | theirs.keys()):
        told = differences(ours.get(name, {}), theirs.get(name, {}))
        found += [f"{name}: {line}" for line in told]
        inputs = sum(len(inputs) for _, inputs in ours.get(name, {}).values())
        print(f"{name:26} {len(ours.get(name, {})):9}  {inputs:6}  {len(told)}")
    print("\n".join([*found, f"{len(ours)} stacks, {len(found)} differences"]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
