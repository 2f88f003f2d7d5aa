"""The steps of ``make setup`` and ``vt setup``. A stamp in .venv records success."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

from vertex_training_cli.toolchain.layout import PLUGINS, Layout, SetupError, cache_home, lock
from vertex_training_cli.toolchain.pulumi_cli import (
    SOURCES,
    Pulumi,
    ensure_pulumi,
    install_gcp_plugin,
    pinned_gcp_plugin,
)
from vertex_training_cli.toolchain.python_env import (
    ensure_venv,
    find_uv,
    has_policy_packages,
    install_packages,
    install_policy_packages,
)

INTERRUPTED: Final = 130


def main(arguments: Sequence[str]) -> int:
    """Install the toolchain. Exit codes: 0 installed, 1 failed or missing, 130 interrupted."""
    parser = argparse.ArgumentParser(
        prog="setup.py",
        description="Install the pinned Python packages, this project and pulumi into .venv.",
        epilog="Environment: VT_CACHE_DIR (folder of builds and downloads), "
        "VT_PULUMI_SOURCE=auto|path|official|build (source of pulumi).",
    )
    parser.add_argument("--check", action="store_true", help="print only what is installed")
    parser.add_argument(
        "--deploy",
        action="store_true",
        help="omit tools for developers, and download only files pinned by SHA-256",
    )
    options = parser.parse_args(arguments)
    source = os.environ.get("VT_PULUMI_SOURCE") or "auto"
    try:
        checkout = Path(__file__).resolve().parents[3]
        layout = Layout(checkout, cache_home(), deploy=options.deploy)
        if os.name != "posix":
            raise SetupError("only Linux and macOS are supported", hint="use WSL on Windows")
        engine = installed(layout, source)
        if engine is None and options.check:
            print("setup: .venv is missing or out of date. Hint: run `make setup`")
            return 1
        if engine is None:
            started = time.monotonic()
            print(f"Setting up {layout.venv} (cache: {layout.cache})", flush=True)
            engine = install(layout, source)
            print(f"Done in {time.monotonic() - started:.0f} s. Next: source .venv/bin/activate")
        print(report(engine))
    except SetupError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nsetup: interrupted; run the command again to continue", file=sys.stderr)
        return INTERRUPTED
    return 0


def install(layout: Layout, source: str) -> Pulumi:
    """Run the missing steps of an installation. Raises SetupError.

    ``source`` is the value of VT_PULUMI_SOURCE: auto, path, official or build.
    """
    if source != "auto" and source not in SOURCES:
        hint = f"set VT_PULUMI_SOURCE to auto, {', '.join(SOURCES)}"
        raise SetupError(f"VT_PULUMI_SOURCE has the unknown value {source!r}", hint=hint)
    with lock(layout.toolchain):
        if engine := installed(layout, source):  # by another setup, while this setup waited
            return engine
        layout.stamp.unlink(missing_ok=True)
        if layout.deploy:
            pinned_gcp_plugin(layout)  # raises before the installation, which takes minutes
        if layout.environment:
            uv = find_uv(layout.bin / "uv")
        else:
            uv = ensure_venv(layout)
            install_packages(uv, layout)
        install_policy_packages(layout, uv)
        pulumi = ensure_pulumi(layout, source)
        if layout.deploy:
            install_gcp_plugin(layout)
        record = {"digest": layout.inputs_digest(source), **asdict(pulumi)}
        layout.stamp.write_text(json.dumps(record, indent=2) + "\n")
    return pulumi


def installed(layout: Layout, source: str) -> Pulumi | None:
    """Return the ``pulumi`` of a complete and current installation, else None."""
    try:
        record = json.loads(layout.stamp.read_text())
        digest = record.pop("digest")
        engine = Pulumi(**record)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None  # no record, or a record of another version
    names = ("pulumi", *PLUGINS) if layout.environment else ("python", "vt", "pulumi", *PLUGINS)
    programs = all(os.access(layout.bin / name, os.X_OK) for name in names)
    whole = programs and has_policy_packages(layout)
    return engine if whole and digest == layout.inputs_digest(source) else None


def report(engine: Pulumi) -> str:
    """Return lines that list the official and the unofficial parts of Pulumi."""
    return f"pulumi {engine.version}: {engine.engine}\nPython language host: {engine.language_host}"
