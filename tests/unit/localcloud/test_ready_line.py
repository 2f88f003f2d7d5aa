"""The server's line ``ready: …`` is a promise: whoever reads it can find the server."""

from __future__ import annotations

import signal
import subprocess
import sys

from localgcp import lifecycle
from localgcp.home import Home
from localgcp.server_info import ServerInfo


def test_a_server_that_says_it_is_ready_can_be_found_at_once(home: Home) -> None:
    command = [sys.executable, "-m", "localgcp.server"]
    command += ["--home", str(home.root), "--repo", str(home.repo)]
    with subprocess.Popen(command, cwd=home.repo, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            ready = next(line for line in server.stdout if line.startswith("ready: "))
            info = ServerInfo.read(home.server_file)
            assert info is not None
            assert info.pid == server.pid
            assert f"vertex 127.0.0.1:{info.vertex_port}, " in ready
            assert lifecycle.healthy(info)
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait()
    assert not home.server_file.exists()
