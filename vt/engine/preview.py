"""Runs ``pulumi preview`` and collects the engine's events."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import yaml

from infra.errors import PreviewError
from infra.located_yaml.loader import Loader

#: With it, ``preview --json`` prints events as they come, policy results among them, instead of
#: one document at the end that lacks those (pulumi/pulumi v3.259.0, pkg/cmd/pulumi/operations).
STREAMING = "PULUMI_ENABLE_STREAMING_JSON_PREVIEW"
BACKEND = "PULUMI_BACKEND_URL"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a preview runs."""

    env: Mapping[str, str]
    source: str
    """Which state it starts from, in words."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a preview gave."""

    lines: tuple[str, ...]
    """The engine's events, one a line."""
    exit_code: int
    said: str
    """What was printed beside them."""


def place(root: Path, stack: str, *, offline: bool, live: bool = False) -> Place:
    """The environment to preview ``stack`` of the project in ``root`` in.

    A stack whose project begins with ``local-`` only ever meets the local cloud. Others meet the
    state that ``PULUMI_BACKEND_URL`` names; without one, or ``offline``, the stand-in plugin and
    an empty state, which needs neither network nor credentials. With ``live`` a local cloud is
    started: a refresh asks it.

    Raises:
        localcloud.LocalCloudError: the local cloud's folder cannot be used.
    """
    from localcloud.environment import environment
    from localcloud.home import Home
    from localcloud.tools import install_tools

    home, is_local = Home.find(cwd=root), _project(root, stack).startswith("local-")
    backend = os.environ.get(BACKEND, "")
    if backend and not offline and not is_local and backend != f"file://{home.pulumi}":
        return Place(dict(os.environ), f"Previewed against the state in {_harmless(backend)}")
    home.create()
    install_tools(home)
    source = (
        "Previewed against the local stack's state"
        if is_local
        else "Previewed offline against an empty state: everything looks new"
    )
    if not (live and is_local):
        return Place(environment(home, None), source)
    from localcloud import lifecycle

    return Place(environment(home, lifecycle.start(home, lambda _: None).ports), source)


def preview(
    root: Path,
    stack: str,
    env: Mapping[str, str],
    *,
    policy_packs: Sequence[str] = (),
    refresh: bool = False,
    seen: Callable[[int], None] = lambda _: None,
) -> Outcome:
    """Preview ``stack``; ``seen`` is called with the number of events so far.

    Raises:
        PreviewError: no event came, or there is no pulumi.
    """
    command = [_pulumi(env), "preview", "--stack", stack, "--json", "--non-interactive"]
    options = [word for pack in policy_packs for word in ("--policy-pack", pack)]
    options += ["--refresh"] if refresh else []
    lines: list[str] = []
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as said,
        subprocess.Popen(
            [*command, *options],
            cwd=root,
            env={**env, STREAMING: "true"},
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
            encoding="utf-8",
            errors="replace",
        ) as process,
    ):
        assert process.stdout is not None  # a pipe was asked for
        for line in process.stdout:
            if line.strip():
                lines.append(line)
                seen(len(lines))
        exit_code = process.wait()
        said.seek(0)
        told = said.read().strip()
    if not lines:
        raise PreviewError(told or f"pulumi preview ended with exit code {exit_code}")
    return Outcome(tuple(lines), exit_code, told)


def _pulumi(env: Mapping[str, str]) -> str:
    path = env.get("PATH", os.defpath) + os.pathsep + str(Path(sys.executable).parent)
    pulumi = shutil.which("pulumi", path=path)
    if pulumi is None:
        raise PreviewError("there is no pulumi on PATH. Hint: run `make setup`.")
    return pulumi


def _project(root: Path, stack: str) -> str:
    """The project a stack file names; empty if it cannot be read, which the preview will tell."""
    try:
        content = yaml.load((root / f"Pulumi.{stack}.yaml").read_bytes(), Loader=Loader)
        return str(content["config"]["gcp:project"])
    except (OSError, yaml.YAMLError, KeyError, TypeError, UnicodeDecodeError):
        return ""


def _harmless(backend: str) -> str:
    """A backend's address without user, password and options."""
    parts = urlsplit(backend)
    return f"{parts.scheme}://{parts.hostname or ''}{parts.path}"
