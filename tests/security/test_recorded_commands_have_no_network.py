"""Tests that a command of ``vt import --run`` cannot send a request, by any client or protocol.

Each story runs in a world of its own: a user, network and mount namespace in which every address
and the names of Google lead to one listener, and in which a daemon listens at Unix sockets.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

import psutil
import pytest

WORLD: Final = Path(__file__).with_name("world_of_a_listener.py")
UNSHARE: Final = ("unshare", "--user", "--map-root-user", "--mount", "--net", "--pid", "--fork",
                  "--kill-child", "--mount-proc")  # fmt: skip
CANARY: Final = "ya29.CANARY"
PYTHON: Final = sys.executable

SDK: Final = """\
import sys
from google.api_core.client_options import ClientOptions
from google.cloud.aiplatform_v1 import JobServiceClient
from google.oauth2.credentials import Credentials

region, name = sys.argv[1:]
client = JobServiceClient(
    credentials=Credentials(token="ya29.CANARY"),
    client_options=ClientOptions(api_endpoint=f"{region}-aiplatform.googleapis.com"),
)
pools = [{"replica_count": 1, "machine_spec": {"machine_type": "n1-standard-4"},
          "container_spec": {"image_uri": "us-docker.pkg.dev/acme-ml/i/x:1"}}]
job = {"display_name": name, "job_spec": {"worker_pool_specs": pools}}
parent = f"projects/acme-ml/locations/{region}"
client.create_custom_job(parent=parent, custom_job=job, timeout=4, retry=None)
"""
URLLIB: Final = """\
import sys, urllib.request
url = f"https://{sys.argv[1]}-aiplatform.googleapis.com/v1/customJobs"
headers = {"Authorization": "Bearer ya29.CANARY"}
urllib.request.urlopen(urllib.request.Request(url, b"{}", headers), timeout=4)
"""
HTTPX: Final = """\
import httpx
httpx.post("https://europe-west1-aiplatform.googleapis.com/v1/customJobs", timeout=4,
           headers={"Authorization": "Bearer ya29.CANARY"})
"""
GRPC: Final = """\
import grpc
channel = grpc.secure_channel("198.51.100.8:443", grpc.ssl_channel_credentials())
channel.unary_unary("/google.cloud.aiplatform.v1.JobService/CreateCustomJob")(
    b"", metadata=[("authorization", "Bearer ya29.CANARY")], timeout=4)
"""
NODE: Final = """\
const request = require("https").request({method: "POST", path: "/v1/customJobs", timeout: 4000,
  host: "europe-west3-aiplatform.googleapis.com", headers: {Authorization: "Bearer ya29.CANARY"}});
request.on("timeout", () => request.destroy());
request.on("error", (error) => console.error(String(error)));
request.end("{}");
"""
SOCKETS: Final = """\
import socket, sys
kind, address = sys.argv[1:]
families = {"tcp": socket.AF_INET, "tcp6": socket.AF_INET6, "udp": socket.AF_INET}
with socket.socket(families.get(kind, socket.AF_UNIX),
                   socket.SOCK_DGRAM if kind == "udp" else socket.SOCK_STREAM) as one:
    one.settimeout(4)
    target = address.replace("@", chr(0)) if kind == "unix" else (address, 443)
    one.connect(target)
    one.sendall(b"Bearer ya29.CANARY")
"""
FILES: Final = {
    "sdk.py": SDK, "send.py": URLLIB, "by_httpx.py": HTTPX, "by_grpc.py": GRPC, "by_node.js": NODE,
    "by_socket.py": SOCKETS,
}  # fmt: skip
CURL: Final = (
    f"curl -k -s -m 4 -H 'Authorization: Bearer {CANARY}' -d x "
    "https://{}-aiplatform.googleapis.com/v1/customJobs"
)
#: Line of the command -> address, or socket, at which the listener sees what it sends.
WAYS: Final = {
    f"PYTHONPATH=. {PYTHON} sdk.py us-central1 out": "198.51.100.1",
    f"{PYTHON} -I send.py us-east1": "198.51.100.2",
    f"{PYTHON} -S send.py us-east4": "198.51.100.3",
    f"{PYTHON} -E send.py us-west1": "198.51.100.4",
    f"{PYTHON} send.py us-west4": "198.51.100.5",
    CURL.format("europe-west4"): "198.51.100.6",
    f"{PYTHON} by_httpx.py": "198.51.100.7",
    f"{PYTHON} by_grpc.py": "198.51.100.8",
    "virtualenv/bin/python sdk.py europe-west2 out": "198.51.100.9",
    "node by_node.js": "198.51.100.10",
    f"{PYTHON} by_socket.py tcp 198.51.100.11": "198.51.100.11",
    f"{PYTHON} by_socket.py tcp6 2001:db8::12": "2001:db8::12",
    f"{PYTHON} by_socket.py udp 198.51.100.13": "198.51.100.13",
    f"setsid sh -c \"until [ -e $WORLD/ended ]; do sleep 1; done; {CURL.format('asia-east1')}\" &":
        "198.51.100.14",
    f"env -i PATH=\"$PATH\" {CURL.format('asia-east2')}": "198.51.100.15",
    "curl -s -m 4 --unix-socket /var/run/docker.sock -X POST http://d/images/x/push":
        "docker",
    f"{PYTHON} by_socket.py unix \"$WORLD/renamed\"": "renamed",
    f"{PYTHON} by_socket.py unix \"$WORLD/other/mounted\"": "mounted",
    f"{PYTHON} by_socket.py unix \"$WORLD/a\u2028b/socket\"": "odd",
    f"{PYTHON} by_socket.py unix @abstract": "abstract",
    f"nsenter --net=\"$WORLD/net\" {PYTHON} by_socket.py tcp 198.51.100.17": "198.51.100.17",
    f"nsenter -t 1 -n -m {PYTHON} \"$WORLD/by_socket.py\" tcp 198.51.100.18": "198.51.100.18",
    f"cd other && umount -l mounted; {PYTHON} ../by_socket.py unix mounted; cd ..": "mounted",
    f"umount -l /run; {PYTHON} by_socket.py unix /run/docker.sock": "docker",
}  # fmt: skip
REGIONS: Final = (
    *("us-central1", "us-east1", "us-east4", "us-west1", "us-west4", "europe-west4"),
    *("europe-west1", "-", "europe-west2", "europe-west3", "-", "-", "-", "asia-east1"),
    "asia-east2",
)

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(
        not sys.platform.startswith("linux")
        or subprocess.run([*UNSHARE, "ip", "link"], capture_output=True, check=False).returncode
        > 0,
        reason="needs namespaces of Linux, and ip",
    ),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with the sending programs, and with Google's host names."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    wrapper = tmp_path / "virtualenv/bin/python"
    wrapper.parent.mkdir(parents=True)
    wrapper.write_text(f'#!/bin/sh\nPYTHONPATH="$PWD" exec {PYTHON} "$@"\n')
    wrapper.chmod(0o755)
    names = [f"198.51.100.{number} {region}-aiplatform.googleapis.com"
             for number, region in enumerate(REGIONS, 1)]  # fmt: skip
    (tmp_path / "hosts").write_text("\n".join(["127.0.0.1 localhost", *names, ""]))
    (tmp_path / "resolv.conf").write_text("nameserver 203.0.113.53\noptions timeout:1 attempts:1\n")
    (tmp_path / "tmp").mkdir()
    return tmp_path


def ways() -> dict[str, str]:
    return {line: at for line, at in WAYS.items() if shutil.which("node") or "node" not in line}


def run_import(folder: Path, *options: str, user: int = 0) -> tuple[dict[str, list[str]], str, str]:
    """Return the listener's received data by address, and stdout and stderr of the command."""
    ordinary = f"{PYTHON} sdk.py us-central1 {{}}"
    lines = [ordinary.format("first"), *ways(), ordinary.format("second")]
    command = "\n".join([*lines, "true"])
    vt = [PYTHON, "-m", "vertex_training_cli.cli", "import", "--run", command]
    done = subprocess.run(
        [*UNSHARE, PYTHON, str(WORLD), str(folder), str(user), *vt, *options],
        cwd=folder,
        env={**os.environ, "TMPDIR": str(folder / "tmp"), "WORLD": str(folder)},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads((folder / "received.json").read_text()), done.stdout, done.stderr


@pytest.mark.parametrize("user", [0, 1000])
def test_recorded_command_has_no_network_and_its_jobs_are_recorded(folder: Path, user: int) -> None:
    received, stdout, stderr = run_import(folder, user=user)
    assert received == {}, stderr
    assert all(f"+++ jobs/{name}.yaml" in stdout for name in ("first", "second"))


@pytest.mark.nightly
def test_without_isolation_each_client_reaches_the_network(folder: Path) -> None:
    received, stdout, stderr = run_import(folder, "--no-isolation")
    assert set(ways().values()) - set(received) == set(), stderr
    assert "note: the command is not isolated" in stderr
    assert any(CANARY in text for texts in received.values() for text in texts)
    assert all(f"+++ jobs/{name}.yaml" in stdout for name in ("first", "second"))


def processes_with(folder: Path) -> list[psutil.Process]:
    """Return processes with this temporary folder."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("TMPDIR") == str(folder) and process.status() != "zombie":
                found.append(process)
        except (psutil.Error, OSError):
            continue
    return found


@pytest.mark.parametrize(
    "number",
    [
        signal.SIGTERM,
        pytest.param(signal.SIGINT, marks=pytest.mark.nightly),
        pytest.param(signal.SIGHUP, marks=pytest.mark.nightly),
    ],
)
@pytest.mark.parametrize("options", [[], ["--no-isolation"]])
def test_signal_leaves_no_process_and_no_folder(
    tmp_path: Path, number: signal.Signals, options: list[str]
) -> None:
    folder = tmp_path / "tmp"
    folder.mkdir()
    script = f"sleep 300 & setsid sleep 301 & trap '' TERM; touch {tmp_path}/ready; sleep 302"
    with subprocess.Popen(
        [PYTHON, "-m", "vertex_training_cli.cli", "import", *options, "--run", script],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(folder)},
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        while not (tmp_path / "ready").exists():
            assert process.poll() is None, process.communicate()
            time.sleep(0.05)
        assert len(processes_with(folder)) > 4  # vt, storage, the shell, its children
        process.send_signal(number)
        process.communicate(timeout=60)
    assert process.returncode != 0
    deadline = time.monotonic() + 15
    while processes_with(folder) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert [each.cmdline() for each in processes_with(folder)] == []
    assert list(folder.iterdir()) == []


def test_system_without_namespaces_is_refused_unless_isolation_is_waived(tmp_path: Path) -> None:
    # A namespace in which no other one can be made.
    forbid = (
        "echo 0 > /proc/sys/user/max_user_namespaces; echo 0 > /proc/sys/user/max_net_namespaces"
    )
    vt = f"{PYTHON} -m vertex_training_cli.cli import --run 'touch ran' "
    for option, ran, text in (
        ("", False, "cannot isolate a command from the network on this machine"),
        ("--no-isolation", True, "note: the command is not isolated: only requests of"),
    ):
        done = subprocess.run(
            [*UNSHARE, "sh", "-c", f"ip link set lo up; {forbid}; exec {vt} {option}"],
            cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert (done.returncode, (tmp_path / "ran").exists()) == (2, ran), done.stderr
        assert text in done.stderr
        assert ("--no-isolation" in done.stderr) is not ran
