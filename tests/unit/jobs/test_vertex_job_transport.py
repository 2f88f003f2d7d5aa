"""The library for jobs: the network that NCCL uses, from its log."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
import yaml
from vertex_job import transport

from tests.fixture_project import SAMPLES

CASES: Final = yaml.safe_load(
    (Path(__file__).parents[2] / "corpus/nccl.yaml").read_text(encoding="utf-8")
)
#: Stands in for NCCL: like it, it opens the file of its log once and does not buffer.
PROGRAM: Final = """
import os, sys
from vertex_job.transport import NcclLog, describe

log = sys.stdin.read()
with NcclLog() as nccl:
    debug = {name: value for name, value in os.environ.items() if name.startswith("NCCL_")}
    file = open(os.environ["NCCL_DEBUG_FILE"], "w", buffering=1)
    file.write(log)
    if "--fails" in sys.argv:
        raise SystemExit("no connection")
print(describe(nccl.network, 4), flush=True)
file.write("NCCL WARN later\\n")
print(sorted(debug), debug["NCCL_DEBUG"], os.path.exists(debug["NCCL_DEBUG_FILE"]))
"""


def run(log: str, *words: str, **environ: str) -> tuple[int, str]:
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": str(SAMPLES / "lib"), **environ}
    command = [sys.executable, "-c", PROGRAM, *words]
    ran = subprocess.run(
        command, input=log, env=environ, capture_output=True, text=True, timeout=60, check=False
    )
    return ran.returncode, ran.stdout


@pytest.mark.parametrize("name", CASES)
def test_network_is_read_from_the_log_of_each_version(name: str) -> None:
    case = CASES[name]
    assert transport.network_of(case["log"]) == case["network"]
    assert transport.describe(case["network"], 4) == case["line"]


SOCKETS: Final = CASES["2.21, without a plugin"]


def test_log_has_the_network_alone_by_default() -> None:
    names = ["NCCL_DEBUG", "NCCL_DEBUG_FILE", "NCCL_DEBUG_SUBSYS"]
    assert run(SOCKETS["log"]) == (0, f"{SOCKETS['line']}\n{names} INFO False\n")


@pytest.mark.parametrize("level", ["INFO", "TRACE", "info"])
def test_log_of_a_user_who_asks_for_it_has_all_lines(level: str) -> None:
    _, shown = run(SOCKETS["log"], NCCL_DEBUG=level)
    names = ["NCCL_DEBUG", "NCCL_DEBUG_FILE"]
    later = f"{SOCKETS['line']}\nNCCL WARN later\n{names} {level} False\n"
    assert shown == SOCKETS["log"] + later


def test_lines_of_a_failed_start_are_in_the_log() -> None:
    assert run(SOCKETS["log"], "--fails") == (1, SOCKETS["log"])


def test_file_of_a_user_stays(tmp_path: Path) -> None:
    own = tmp_path / "nccl.log"
    _, shown = run(SOCKETS["log"], NCCL_DEBUG="INFO", NCCL_DEBUG_FILE=str(own))
    assert "its log does not name the network" in shown
    assert own.read_text() == SOCKETS["log"] + "NCCL WARN later\n"
