"""Jobs on Batch: names, the script of several machines, and the offer of each service."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.infra.customjob.test_corpus import NETWORKS, PROJECT, TABLE
from vertex_training.catalog import costs
from vertex_training.customjob import batch as machines
from vertex_training.customjob.batch import EXIT_CODES, explain, is_job_of, job_id, reason
from vertex_training.customjob.rules.batch import Offer, offers

DIGEST = f"us-central1-docker.pkg.dev/{PROJECT}/x/trainer@sha256:{'0' * 64}"
#: References of the files of jobs/, with values of the right form.
REFERENCES = TABLE | {
    **{f"images.{name}": DIGEST for name in ("titanic", "spot-resume", "gemma", "gemma-finetune")},
    "buckets.data.mount": "/gcs/acme-ml-dev-data-dev",
    "network.interface": {"networkAttachment": TABLE["network.attachment"]},
}
PSC = NETWORKS["psc"]
SUBNET = "projects/acme-ml-dev/regions/us-central1/subnetworks/training-dev"


@given(st.text(max_size=80), st.text(max_size=80), st.integers(1, 10**6))
def test_an_id_is_valid_for_any_stack_and_job(stack: str, job: str, turn: int) -> None:
    found = job_id(stack, job, "batch-0123456789abcdef0123", turn)
    assert re.fullmatch(r"[a-z][a-z0-9-]{0,61}[a-z0-9]", found)
    assert is_job_of(found, "batch-0123456789abcdef0123")
    assert not is_job_of(found, "batch-0123456789abcdef0124")


@given(st.lists(st.sampled_from([50001, 50005, 1, 0]), max_size=4))
def test_the_reason_of_a_failure_explains_its_exit_code(codes: list[int]) -> None:
    text = reason([(f"Task failed with exit code {code}.", code) for code in codes])
    failing = [code for code in codes if code]
    if failing and failing[-1] in EXIT_CODES:
        assert EXIT_CODES[failing[-1]] in text
    assert explain("x", 3) == "x"


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
def test_each_machine_has_its_rank_and_its_peers(
    tmp_path: Path, name: str, index: int, expected: tuple[str, int]
) -> None:
    found = written(tmp_path, "a.c.acme\n\nb\nc.c.acme\n", index, name)
    assert found == cluster(*expected, "a.c.acme:2222", ["b:2222", "c.c.acme:2222"])


def job(*pools: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {"jobSpec": {"workerPoolSpecs": list(pools), "serviceAccount": "a@b.c", **spec}}


def pool(machine: str, replicas: int = 1, **machine_spec: Any) -> dict[str, Any]:
    return {
        "machineSpec": {"machineType": machine, **machine_spec},
        "replicaCount": replicas,
        "containerSpec": {"imageUri": "x"},
    }


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ({"trialJobSpec": {}}, "it does not support tuning"),
        (job(pool("ct5lp-hightpu-1t")), "it does not support TPUs"),
        (job(pool("n1-standard-4"), tensorboard="t"), "it does not support tensorboard"),
        (
            job(pool("n1-standard-4"), pool("n1-standard-8")),
            "machineSpec differs from the first pool",
        ),
        (job(pool("n1-standard-4"), serviceAccount=""), "serviceAccount is missing"),
        (
            job(
                pool("n1-standard-4"),
                scheduling={"strategy": "FLEX_START", "timeout": "700000s"},
            ),
            "the timeout is longer than Batch's limit of 7 days",
        ),
        (
            job(pool("n1-standard-4"), pscInterfaceConfig={"networkAttachment": "n"}),
            "the subnet of this network attachment is unknown",
        ),
    ],
)
def test_whom_batch_refuses_it_says_why_in_few_words(message: dict[str, Any], words: str) -> None:
    here, other = offers([message], "us-central1", "vertex")
    assert here.cost is not None
    assert (other.cost, other.refusal, str(other)) == (None, words, f"not Batch: {words}")


def test_an_attachment_with_a_known_subnet_is_taken_and_a_ladder_is_not() -> None:
    message = job(pool("n1-standard-4"), pscInterfaceConfig={"networkAttachment": "n"})
    assert not offers([message], "us-central1", "vertex", subnet=True)[1].refusal
    rungs = [message, job(pool("n1-standard-8"))]
    here, other = offers(rungs, "us-central1", "vertex", subnet=True)
    assert other.refusal == "it does not support ladders"
    assert here.cost == costs.of_job(rungs[1], "us-central1")  # the dearest


def test_an_unknown_job_is_neither_priced_nor_refused() -> None:
    assert [str(each) for each in offers([{}], "us-central1", "vertex")] == [
        "Vertex no price (168 h)",
        "Batch no price (4 attempts of 168 h)",
    ]
    assert str(Offer("batch", None, "x")) == "not Batch: x"


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=5,
    ),
    st.sampled_from(["labels", "tensorboard", "network", "experiment", "enableWebAccess"]),
)
def test_no_value_breaks_the_line(value: Any, field: str) -> None:
    """Fields that a job of somebody else's state may have, of any type."""
    _, other = offers([job(pool("n1-standard-4"), **{field: value})], "us-central1", "vertex")
    assert re.fullmatch(r"not Batch: it does not support \w+|Batch \$\d+\.\d\d \(.*\)", str(other))
