"""The steps of ``make setup``. A finished installation is recorded in .venv/setup.json."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from typing import Any, Final

from vertex_training_cli.toolchain.cache import lock
from vertex_training_cli.toolchain.console import SetupError, step
from vertex_training_cli.toolchain.layout import PLUGINS, Layout
from vertex_training_cli.toolchain.policy_env import install_policy_packages, is_whole
from vertex_training_cli.toolchain.pulumi_cli import check_source, ensure_pulumi, install_gcp_plugin
from vertex_training_cli.toolchain.python_env import ensure_uv, ensure_venv, install_packages

INTERRUPTED: Final = 130


def main(arguments: Sequence[str]) -> int:
    """Exit codes: 0 installed, 1 not installed or failed, 130 interrupted."""
    parser = argparse.ArgumentParser(
        prog="setup.py",
        description="Install the pinned Python packages, this project and pulumi into .venv.",
        epilog="Environment: VT_CACHE_DIR (where builds and downloads are kept), "
        "VT_PULUMI_SOURCE=auto|path|official|build (where pulumi comes from).",
    )
    parser.add_argument("--check", action="store_true", help="only say what is in place")
    parser.add_argument(
        "--deploy",
        action="store_true",
        help="install runtime.txt and policy.txt only, and download only what is pinned by SHA-256",
    )
    options = parser.parse_args(arguments)
    source = os.environ.get("VT_PULUMI_SOURCE") or "auto"
    try:
        layout = Layout.of_this_checkout(deploy=options.deploy)
        if os.name != "posix":
            raise SetupError("only Linux and macOS are supported", hint="use WSL on Windows")
        check_source(source)
        if record := installation_record(layout, source):
            report(record)
            return 0
        if options.check:
            print("setup: .venv is missing or out of date. Hint: make setup")
            return 1
        install(layout, source)
    except SetupError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nsetup: interrupted; run it again to go on", file=sys.stderr)
        return INTERRUPTED
    return 0


def install(layout: Layout, source: str) -> None:
    """Run every step of an installation; steps whose results exist do nothing."""
    started = time.monotonic()
    print(f"Setting up {layout.venv} (cache: {layout.cache})", flush=True)
    with lock(layout.toolchain):
        if record := installation_record(layout, source):  # by the setup that this one waited for
            report(record)
            return
        layout.stamp.unlink(missing_ok=True)
        with step("uv") as current:
            uv, current.note = ensure_uv(layout)
        with step("virtual environment") as current:
            current.note = ensure_venv(uv, layout)
        with step("packages") as current:
            current.note = install_packages(uv, layout)
        with step("policy pack") as current:
            current.note = install_policy_packages(layout, uv)
        with step("pulumi") as current:
            pulumi = ensure_pulumi(layout, source)
            current.note = f"{pulumi.version}, {pulumi.engine}"
        if layout.deploy:
            with step("gcp plugin") as current:
                current.note = install_gcp_plugin(layout)
        record = {"digest": layout.inputs_digest(source), **pulumi.as_record()}
        layout.stamp.write_text(json.dumps(record, indent=2) + "\n")
    report(record)
    print(f"Done in {time.monotonic() - started:.0f} s. Next: source .venv/bin/activate")


def installation_record(layout: Layout, source: str) -> dict[str, Any] | None:
    """The record of a complete and current installation, else None."""
    try:
        record = json.loads(layout.stamp.read_text())
    except (OSError, ValueError):
        return None
    commands = [layout.bin / name for name in ("python", "vt", "pulumi", *PLUGINS)]
    whole = is_whole(layout) and all(os.access(command, os.X_OK) for command in commands)
    current = whole and record.get("digest") == layout.inputs_digest(source)
    return record if current else None


def report(record: dict[str, Any]) -> None:
    """Print which parts of Pulumi are official and which are not."""
    print(f"pulumi {record['version']}: {record['engine']}")
    print(f"Python language host: {record['language_host']}")
