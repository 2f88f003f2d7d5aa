"""Tests that a job's code and its installation see no environment variable of this machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest

from localgcp import lifecycle
from localgcp.home import Home
from localgcp.home.environment import installer_environment, server_environment
from localgcp.runner.preparation import build_wheels, install_wheels, make_environment
from localgcp.system import processes
from localgcp.vertex.job_logs import JobLog
from tests.unit.localcloud.conftest import Cloud, command_job

SECRETS = {
    "SECRET_CANARY": "canary-1",
    "GOOGLE_APPLICATION_CREDENTIALS": "/home/canary-2.json",
    "PULUMI_ACCESS_TOKEN": "canary-3",
    "PIP_INDEX_URL": "https://user:canary-4@packages.example/simple",
    "PIP_NO_INDEX": "1",
    "UV_DEFAULT_INDEX": "https://user:canary-5@packages.example/simple",
    "UV_PUBLISH_TOKEN": "canary-6",
    "HTTPS_PROXY": "http://user:canary-7@proxy.example:3128",
    "AWS_SECRET_ACCESS_KEY": "canary-8",
}


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set secrets in environment variables of this machine."""
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)


def sdist(folder: Path, name: str, seen: Path, requires: str = "pyyaml") -> Path:
    """Return a source package whose setup.py writes its environment variables to a file."""
    source = folder / f"{name}-1.0"
    (source / name).mkdir(parents=True)
    (source / name / "__init__.py").write_text("")
    (source / "setup.py").write_text(
        f"import json, os, pathlib\n"
        f"pathlib.Path({str(seen)!r}).open('a').write(json.dumps(dict(os.environ)) + '\\n')\n"
        f"from setuptools import setup\n"
        f"setup(name={name!r}, version='1.0', packages=[{name!r}], install_requires=[{requires!r}])"
    )
    archive = folder / f"{name}-1.0.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(source, source.name)
    return archive


def install(folder: Path, *files: Path) -> list[dict[str, str]]:
    """Install files as a job's packages; return the environments of pip's processes."""
    python = make_environment(Path(sys.prefix), folder / "venv")
    log, environments = JobLog(folder / "log"), []

    def run(command: list[str], env: Mapping[str, str]) -> int:
        environments.append(dict(env))
        with log.open() as output:
            return subprocess.run(
                command, env=dict(env), stdout=output, stderr=output, check=False
            ).returncode

    wheels = folder / "wheels"
    build_wheels(python, list(files), wheels, folder, run)
    install_wheels(python, list(wheels.iterdir()), folder, run)
    ran = [str(python), "-c", f"import {files[0].name.partition('-')[0]}"]
    subprocess.run(ran, check=True)
    return environments


def test_package_build_sees_no_secret_and_no_index(tmp_path: Path, host: None) -> None:
    seen = tmp_path / "seen"
    install(tmp_path, sdist(tmp_path, "demo", seen))
    assert [line for line in seen.read_text().splitlines() if "canary" in line] == []
    names = {name for line in seen.read_text().splitlines() for name in json.loads(line)}
    assert not {name for name in names if name.startswith("UV_")}
    assert "GOOGLE_APPLICATION_CREDENTIALS" not in names


def test_pip_receives_only_the_variables_of_the_package_index(tmp_path: Path, host: None) -> None:
    build, installation = install(tmp_path, sdist(tmp_path, "demo", tmp_path / "seen"))
    assert "PIP_INDEX_URL" not in build
    assert installation["PIP_INDEX_URL"] == SECRETS["PIP_INDEX_URL"]
    assert installation["HTTPS_PROXY"] == SECRETS["HTTPS_PROXY"]
    hidden = {"SECRET_CANARY", "GOOGLE_APPLICATION_CREDENTIALS", "PULUMI_ACCESS_TOKEN",
              "UV_PUBLISH_TOKEN", "AWS_SECRET_ACCESS_KEY"}  # fmt: skip
    assert hidden & installation.keys() == set()


def test_code_of_a_job_sees_no_variable_of_this_machine(cloud: Cloud, host: None) -> None:
    script = "import json, os; print('seen', json.dumps(dict(os.environ)))"
    log = cloud.log(cloud.run(command_job(sys.executable, "-c", script)))
    assert "seen {" in log
    assert "canary" not in log


#: Prints which processes have this text in their variables.
READER: Final = """
import pathlib, sys
for file in pathlib.Path("/proc").glob("[0-9]*/environ"):
    try:
        text = file.read_bytes().decode(errors="replace")
    except OSError:
        continue
    if sys.argv[1] in text:
        print("found in", file.parent.name)
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/environ"), reason="needs /proc")
def test_job_process_inherits_no_variable_and_sees_processes_as_documented(cloud: Cloud) -> None:
    # A container sees none of them: tests/containers/test_jobs.py.
    env = {"CANARY": "canary-of-a-shell"}
    with subprocess.Popen(
        [sys.executable, "-c", "input()"], env=env, stdin=subprocess.PIPE
    ) as shell:
        name = cloud.run(command_job(sys.executable, "-c", READER, "canary-of-a-shell"))
        shell.communicate(b"\n")
    found = [line for line in cloud.log(name).splitlines() if "found in" in line]
    assert [line.rpartition(" ")[2] for line in found] == [str(shell.pid)]


INSTALLERS: Final = (
    *("PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "LANG", "LANGUAGE", "LC_ALL", "TZ"),
    *("XDG_CACHE_HOME", "HTTPS_PROXY", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR", "NETRC"),
    *("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "PIP_INDEX_URL", "UV_DEFAULT_INDEX"),
)
SERVER: Final = (
    *("VT_LOCAL_HOME", "PYTHONPATH", "GRPC_VERBOSITY", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"),
    "CUDA_VISIBLE_DEVICES",
)


def test_installers_and_server_receive_only_documented_variables() -> None:
    hidden = ("UV_PUBLISH_TOKEN", "AWS_SECRET_ACCESS_KEY", "MY_HOME", "SSH_AUTH_SOCK", "GH_TOKEN")
    host = dict.fromkeys((*INSTALLERS, *SERVER, *hidden), "x")
    assert set(installer_environment(host)) == set(INSTALLERS)
    assert set(server_environment(host)) == {*INSTALLERS, *SERVER}


@pytest.fixture
def server(home: Home, host: None) -> Iterator[Home]:
    """Return a local cloud that was started with secrets in its environment variables."""
    lifecycle.start(home, print)
    yield home
    lifecycle.stop(home)


@pytest.mark.skipif(not os.path.exists("/proc/self/environ"), reason="needs /proc")
def test_server_inherits_no_secret_of_its_starter(server: Home) -> None:
    info = lifecycle.running(server)
    assert info is not None
    pids = [info.pid, *(child.pid for child in processes.live_children(server.children))]
    for pid in pids:
        environ = Path(f"/proc/{pid}/environ").read_text()
        hidden = ("canary-1", "canary-2", "canary-3", "canary-6", "canary-8")
        assert not [name for name in hidden if name in environ]
