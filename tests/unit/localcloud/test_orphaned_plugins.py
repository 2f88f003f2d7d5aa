"""Plugins that a killed ``pulumi`` leaves behind."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from localgcp.home import Home
from localgcp.orphaned_plugins import end_orphaned_plugins
from localgcp.processes import start_time
from tests.unit.localcloud.conftest import wait_until

SLEEP = "import time; time.sleep(600)  # "


def start_orphan(home: str, command: str, note: Path) -> int:
    """A sleeping process whose parent is gone; returns its id."""
    script = f'"{sys.executable}" -c "{SLEEP}{command}" >/dev/null 2>&1 & echo $! >"{note}"'
    subprocess.run(["sh", "-c", script], env={**os.environ, "VT_LOCAL_HOME": home}, check=True)
    pid = int(note.read_text())
    status = Path(f"/proc/{pid}/status")
    wait_until(lambda: f"PPid:\t{os.getpid()}\n" not in status.read_text())
    return pid


def test_only_orphaned_plugins_of_this_home_are_ended(home: Home, tmp_path: Path) -> None:
    ours = start_orphan(str(home.root), "pulumi.dynamic", tmp_path / "a")
    elsewhere = start_orphan("/another/home", "pulumi.dynamic", tmp_path / "b")
    no_plugin = start_orphan(str(home.root), "training", tmp_path / "c")
    script = tmp_path / "engine.sh"  # a live parent that belongs to this home too
    script.write_text(
        f'"{sys.executable}" -c "{SLEEP}pulumi.dynamic" & echo $! >"{tmp_path}/d"; wait'
    )
    env = {**os.environ, "VT_LOCAL_HOME": str(home.root)}
    engine = subprocess.Popen(["sh", str(script)], env=env)
    in_use = int(wait_until(lambda: (tmp_path / "d").exists() and (tmp_path / "d").read_text()))
    try:
        assert end_orphaned_plugins(home) == [ours]
        assert start_time(ours) is None
        assert all(start_time(pid) for pid in (elsewhere, no_plugin, in_use))
    finally:
        for pid in (elsewhere, no_plugin, in_use):
            os.kill(pid, 9)
        engine.wait()
