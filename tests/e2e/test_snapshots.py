"""Tests a BigQuery table in the local cloud, its snapshot, and a job that trains on the snapshot.

The tests of this file are one story and run in order. The engine is installed by the command that
the pages name.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np
import pytest

from localgcp.home.servers import ServerInfo
from tests.conftest import Checkout
from tests.e2e.small_stacks import MACHINE, PROGRAMS, SmallStack
from tests.warehouse import Warehouse

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1500)]

SPLITS = "jobs/data/titanic/{}.npz"
COLUMNS = ("passenger_class", "sex", "survived")
#: Learns how many survived of each class and sex, and is tested on the passengers left out.
TRAIN = PROGRAMS["snapshots"]["TRAIN"]


def load(warehouse: Warehouse, splits: tuple[str, ...], how: str) -> None:
    """Load passengers from a bucket, like a data team."""
    lines = [",".join(("split", *COLUMNS))]
    for split in splits:
        columns = np.load(SPLITS.format(split))
        for row in zip(*(columns[name] for name in COLUMNS), strict=True):
            lines.append(",".join(map(str, (split, *row))))
    warehouse.load("titanic.passengers", lines, how)


@pytest.fixture(scope="module")
def story(checkout: Checkout) -> SmallStack:
    checkout.run("vt", "local", "bigquery", "--install")
    data = checkout.path / "data"
    data.mkdir()
    (data / "titanic.sql").write_text(
        "SELECT split, passenger_class, sex, survived FROM titanic.passengers -- all\n"
    )
    (data / "train.py").write_text(TRAIN)
    return SmallStack(checkout, "snapshots")


@pytest.fixture(scope="module")
def warehouse(story: SmallStack) -> Warehouse:
    info = ServerInfo.read(story.checkout.home / "server.json")
    assert info is not None
    found = Warehouse(info.ports, story.project)
    found.make_dataset("titanic")
    load(found, ("train", "test"), "WRITE_TRUNCATE")
    return found


def write(
    story: SmallStack, *, run: int = 1, most: int = 20_000_000, declared: bool = True
) -> None:
    script = str(story.checkout.path / "data" / "train.py")
    container = {
        "imageUri": "${images.busy}",
        "command": [sys.executable, script],
        "args": ["${snapshots.passengers}", str(story.checkout.path / "jobs" / "lib")],
    }
    job = {
        "serviceAccount": "${serviceAccounts.trainer}",
        "baseOutputDirectory": {"outputUriPrefix": "${buckets.artifacts}/${job.requestId}"},
        "scheduling": {"timeout": "900s"},
        "workerPoolSpecs": [
            {"replicaCount": 1, "machineSpec": MACHINE, "containerSpec": container}
        ],
    }
    snapshot = {
        "query": "data/titanic.sql", "maxBytesBilled": most, "format": "csv", "run": run,
    }  # fmt: skip
    buckets = {"artifacts": {"forceDestroy": True}, "data": {"forceDestroy": True}}
    accounts = {"trainer": {"reads": ["data"], "writes": ["artifacts"]}}
    given = {"snapshots": {"passengers": snapshot}} if declared else {}
    jobs = {"titanic": job} if declared else {}
    story.write(jobs, buckets=buckets, serviceAccounts=accounts, **given)


def metrics(story: SmallStack) -> list[dict[str, Any]]:
    """Return the metrics of all jobs, in no order."""
    files = (story.checkout.home / "storage").glob("*artifacts*/*/model/metrics.json")
    return [json.loads(each.read_text()) for each in files]


def accuracy() -> float:
    """Return the accuracy computed from the files."""
    train, test = np.load(SPLITS.format("train")), np.load(SPLITS.format("test"))
    right = 0
    for group, sex, survived in zip(*(test[name] for name in COLUMNS), strict=True):
        same = (train["passenger_class"] == group) & (train["sex"] == sex)
        right += (train["survived"][same].mean() > 0.5) == bool(survived)
    return right / len(test["survived"])


def test_job_trains_on_the_snapshot_of_a_table(story: SmallStack, warehouse: Warehouse) -> None:
    write(story)
    story.vt("local", "up")
    assert metrics(story) == [{"rows": 915 + 197, "accuracy": pytest.approx(accuracy())}]
    assert [name.partition("-")[2].split("-", 2)[2] for name in warehouse.ran()] == [
        "export-1-1", "query-1",
    ]  # fmt: skip


def test_changed_table_changes_no_snapshot(story: SmallStack, warehouse: Warehouse) -> None:
    load(warehouse, ("val",), "WRITE_APPEND")
    story.is_settled()
    assert len(warehouse.ran()) == 2


def test_raised_run_takes_another_snapshot(story: SmallStack, warehouse: Warehouse) -> None:
    write(story, run=2)
    story.vt("local", "up")
    assert sorted(each["rows"] for each in metrics(story)) == [1112, 1309]
    assert len(warehouse.ran()) == 4
    assert len(manifests(story)) == 2
    words = ("data", "snapshots", "diff", "passengers", "--stack", story.name, "--format", "json")
    said = json.loads(story.checkout.run("vt", *words, expect=1).stdout)
    assert said["rows"] == {"old": 1112, "new": 1309}
    assert said["bytes"]["old"] < said["bytes"]["new"]
    assert "sqlSha256" not in said


@pytest.mark.nightly
def test_lost_state_is_restored_without_a_new_query(
    story: SmallStack, warehouse: Warehouse
) -> None:
    told = story.comes_back()
    [adopted] = [line for line in told.splitlines() if "will adopt" in line]
    assert "snapshots-passengers" in adopted
    assert len(warehouse.ran()) == 4


@pytest.mark.nightly
def test_byte_limit_refuses_a_query_despite_a_low_estimate(
    story: SmallStack, warehouse: Warehouse
) -> None:
    # The service bills 10 MiB at least, which no dry run says.
    write(story, run=3, most=1_000_000)
    assert "bytesBilledLimitExceeded" in story.vt("local", "up", expect=1)
    write(story, run=3, most=1_000)
    said = story.pulumi("preview", expect=None)
    assert "but maxBytesBilled is 1,000" in said
    assert len(manifests(story)) == 2


@pytest.mark.nightly
def test_review_and_preflight_refuse_a_query_of_a_missing_table(story: SmallStack) -> None:
    query = story.checkout.path / "data" / "titanic.sql"
    before = query.read_text()
    query.write_text("SELECT * FROM titanic.nothing\n")
    write(story, run=3)
    report = story.vt("review", expect=1)
    assert "nothing" in report.partition("Unknown, because the preview failed: ")[2]
    said = story.vt("preflight", expect=3)
    assert "snapshot passengers: dry run of its query in BigQuery: BigQuery: " in said
    query.write_text(before)


@pytest.mark.nightly
def test_removed_snapshot_keeps_its_objects(story: SmallStack) -> None:
    write(story, declared=False)
    story.up()
    assert len(manifests(story)) == 2


def manifests(story: SmallStack) -> list[Any]:
    """Return the manifests in the bucket."""
    return list((story.checkout.home / "storage").glob("*/snapshots/**/manifest.json"))
