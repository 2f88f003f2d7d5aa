"""Which machines Batch is asked for, field by field, and what a script of the first step writes."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from vertex_training.customjob.batch import machines
from vertex_training.customjob.rules.job import Job, Pool


def job(machine: dict[str, Any], strategy: str = "", **pool: Any) -> Job:
    spec: dict[str, Any] = {"workerPoolSpecs": [{"machineSpec": machine, **pool}]}
    if strategy:
        spec["scheduling"] = {"strategy": strategy}
    return Job({"jobSpec": spec})


def reserved(kind: str, *names: str) -> dict[str, Any]:
    affinity = {"reservationAffinityType": kind, **({"values": list(names)} if names else {})}
    return {"machineType": "n1-standard-4", "reservationAffinity": affinity}


def policy(**changes: Any) -> dict[str, Any]:
    """That of an n1-standard-4 of which nothing is said, with changes."""
    return {
        "machineType": "n1-standard-4",
        "provisioningModel": "STANDARD",
        "bootDisk": {"sizeGb": "100"},
        "reservation": "NO_RESERVATION",
        **changes,
    }


def test_any_reservation_that_fits_is_asked_for_by_no_word() -> None:
    expected = policy()
    del expected["reservation"]
    assert machines.policy(job(reserved("ANY_RESERVATION")), "acme") == {"policy": expected}


@pytest.mark.parametrize(
    ("machine_type", "expected"),
    [
        ("n1-standard-4", {"cpuMilli": "4000", "memoryMib": "15360"}),
        ("n1-highcpu-16", {"cpuMilli": "16000", "memoryMib": "14745"}),  # 14.4 GB, no fraction
        ("no-such-machine", {}),
    ],
)
def test_a_task_gets_the_whole_machine(machine_type: str, expected: dict[str, str]) -> None:
    pool = Pool(0, {"machineSpec": {"machineType": machine_type}})
    assert machines.resources(pool) == expected


def written(tmp_path: Path, hosts: str, index: int, name: str = "other") -> dict[str, Any]:
    """The variables that the script leaves on the machine ``name``, whose task has this index."""
    commands = tmp_path / "bin"
    commands.mkdir(exist_ok=True)
    hostname = commands / "hostname"
    hostname.write_text(f"#!/bin/sh\ncase $1 in -f) echo {name}.c.acme ;; *) echo {name} ;; esac\n")
    hostname.chmod(0o755)
    (tmp_path / "hosts").write_text(hosts)
    environment = {
        "PATH": f"{commands}:{os.environ['PATH']}",
        "BATCH_HOSTS_FILE": str(tmp_path / "hosts"),
        "BATCH_TASK_INDEX": str(index),
        "TMPDIR": str(tmp_path),
    }
    subprocess.run(["sh", "-c", machines.SCRIPT], env=environment, check=True, timeout=30)
    lines = (tmp_path / "vertex-training.env").read_text().splitlines()
    found: dict[str, Any] = dict(line.split("=", 1) for line in lines)
    return found | {key: json.loads(found[key]) for key in ("CLUSTER_SPEC", "TF_CONFIG")}


def cluster(kind: str, index: int, first: str, others: list[str]) -> dict[str, Any]:
    """Variables of the machine number ``index`` of a pool."""
    worker = kind == "workerpool1"
    return {
        "CLUSTER_SPEC": {
            "cluster": {"workerpool0": [first], "workerpool1": others},
            "environment": "cloud",
            "task": {"type": kind, "index": index},
        },
        "TF_CONFIG": {
            "cluster": {"chief": [first], "worker": others},
            "environment": "cloud",
            "task": {"type": "worker" if worker else "chief", "index": index},
        },
        "MASTER_ADDR": first.partition(":")[0],
        "MASTER_PORT": "2222",
        "RANK": str(index + worker),
        "WORLD_SIZE": str(len(others) + 1),
    }


@pytest.mark.parametrize(
    ("name", "index", "expected"),
    [
        ("a", 2, ("workerpool0", 0)),  # the host counts, not the index
        ("b", 0, ("workerpool1", 0)),
        ("c", 0, ("workerpool1", 1)),
        ("other", 1, ("workerpool1", 0)),  # no line is this host: the index counts
        ("other", 0, ("workerpool0", 0)),
    ],
)
def test_each_machine_is_told_its_rank_and_its_peers(
    tmp_path: Path, name: str, index: int, expected: tuple[str, int]
) -> None:
    found = written(tmp_path, "a.c.acme\n\nb\nc.c.acme\n", index, name)
    assert found == cluster(*expected, "a.c.acme:2222", ["b:2222", "c.c.acme:2222"])


def test_a_machine_alone_is_its_own_primary() -> None:
    assert json.loads(machines.ALONE) == {
        "cluster": {"workerpool0": ["localhost:2222"]},
        "environment": "cloud",
        "task": {"type": "workerpool0", "index": 0},
    }
    assert machines.ENV_FILE == "/tmp/vertex-training.env"


def test_what_the_script_writes_is_what_no_text_of_a_request_can_have(tmp_path: Path) -> None:
    assert set(written(tmp_path, "a\nb\n", 0)) == set(machines.VARIABLES)
