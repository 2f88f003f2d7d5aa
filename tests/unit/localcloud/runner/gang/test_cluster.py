"""The replicas of a job, what each of them sees, and what this machine refuses.

The golden files have the shapes of docs.cloud.google.com/…/training/distributed-training, with host
names of this form: cmle-training-workerpool1-ID-0.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from localgcp.errors import StartRefusedError
from localgcp.runner import environment
from localgcp.runner.gang import cluster, hosts

FIXTURES = Path(__file__).resolve().parents[4] / "fixtures/replicas"
REDUCTION = "us-docker.pkg.dev/vertex-ai-restricted/training/reductionserver:latest"
#: Replicas of each pool; 0 stands for a pool that is skipped by ``{}``.
LAYOUTS = {
    "one-pool": [1],
    "two-pools": [1, 2],
    "three-pools": [1, 2, 1],
    "four-pools": [1, 2, 1, 1],
    "workers-skipped": [1, 0, 2],
    "evaluator-alone": [1, 1, 0, 1],
}


def spec(counts: list[int], image: str = "python:3.11") -> dict[str, Any]:
    pools: list[dict[str, Any]] = [
        {
            "replicaCount": str(count),
            "containerSpec": {"imageUri": image, "args": [f"--pool={number}"]},
        }
        if count
        else {}
        for number, count in enumerate(counts)
    ]
    return {"workerPoolSpecs": pools}


def seen(counts: list[int]) -> dict[str, dict[str, Any]]:
    """What every replica finds in its environment, JSON decoded."""
    job = spec(counts)
    members = cluster.replicas(job)
    names = {each.name: f"{hosts.host_name(each, 'ab')}:{cluster.PORT}" for each in members}
    found: dict[str, dict[str, Any]] = {}
    for name, placement in cluster.placements(members, names).items():
        variables = environment.service_variables(
            job_id="42", project_number="123456789012", spec=job, placement=placement
        )
        found[name] = {key: decoded(value) for key, value in variables.items()}
    return found


def decoded(value: str) -> Any:
    return json.loads(value) if value.startswith("{") else value


@pytest.mark.parametrize("layout", LAYOUTS)
def test_each_replica_sees_the_documented_shapes(layout: str) -> None:
    """To write a file anew: ``python -m tests.unit.localcloud.runner.gang.test_cluster``."""
    assert seen(LAYOUTS[layout]) == json.loads((FIXTURES / f"{layout}.json").read_text())


def test_the_shapes_have_no_field_that_the_documentation_lacks_or_lack_one() -> None:
    """The page's own example, seen on worker 1 of 1 chief, 2 workers, 1 reducer."""
    found = seen([1, 2, 1])["workerpool1-1"]
    spec_, config = found["CLUSTER_SPEC"], found["TF_CONFIG"]
    assert set(spec_) == set(config) == {"cluster", "environment", "task", "job"}
    assert {pool: len(entries) for pool, entries in spec_["cluster"].items()} == {
        "workerpool0": 1, "workerpool1": 2, "workerpool2": 1,
    }  # fmt: skip
    assert {role: len(entries) for role, entries in config["cluster"].items()} == {
        "chief": 1, "worker": 2, "ps": 1,
    }  # fmt: skip
    assert spec_["task"] == {"type": "workerpool1", "index": 1}  # trial: in tuning jobs only
    assert {**config["task"], "cloud": "any"} == {"type": "worker", "index": 1, "cloud": "any"}
    assert spec_["environment"] == config["environment"] == "cloud"
    assert spec_["cluster"]["workerpool1"][1] == "cmle-training-workerpool1-ab-1:2222"


def test_a_single_replica_has_no_tf_config_and_an_evaluator_is_in_no_cluster_of_it() -> None:
    assert "TF_CONFIG" not in seen([1])["workerpool0-0"]
    config = seen([1, 2, 1, 1])["workerpool3-0"]["TF_CONFIG"]
    assert "evaluator" not in config["cluster"]
    assert config["task"]["type"] == "evaluator"


def test_nothing_sets_what_torchrun_sets() -> None:
    names = {name for replica in seen([1, 3]).values() for name in replica}
    assert names.isdisjoint({"RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"})


def test_more_replicas_than_this_machine_runs_are_refused_with_their_number() -> None:
    with pytest.raises(StartRefusedError, match=r"at most 16 .* this one has 51"):
        cluster.replicas(spec([1, 50]))
    with pytest.raises(StartRefusedError, match="has 1000000000001"):
        cluster.replicas(spec([1, 10**12]))


def test_replicas_that_do_not_fit_into_memory_are_refused() -> None:
    cluster.check_memory(3, 3 * cluster.REPLICA_BYTES)
    with pytest.raises(StartRefusedError, match=r"4 replicas take 1024 MiB .* has 768 MiB free"):
        cluster.check_memory(4, 3 * cluster.REPLICA_BYTES)
    cluster.check_memory(1, 0)


def test_a_reduction_server_is_refused_with_the_reason() -> None:
    job = spec([1, 1])
    job["workerPoolSpecs"].append({"replicaCount": "2", "containerSpec": {"imageUri": REDUCTION}})
    with pytest.raises(StartRefusedError, match=r"workerpool2-0 is a reduction server: .* NCCL"):
        cluster.replicas(job)


def test_parameter_servers_run_as_what_they_are() -> None:
    assert [each.name for each in cluster.replicas(spec([1, 2, 2]))] == [
        "workerpool0-0", "workerpool1-0", "workerpool1-1", "workerpool2-0", "workerpool2-1",
    ]  # fmt: skip


@pytest.mark.parametrize("count", [15, 16])
def test_sixteen_replicas_are_run_and_no_more(count: int) -> None:
    members = cluster.replicas(spec([1, count - 1]))
    assert len(members) == count
    assert members[-1] == cluster.Replica(1, count - 2, spec([1, count - 1])["workerPoolSpecs"][1])


def test_the_texts_of_refusals_say_what_to_do_instead() -> None:
    with pytest.raises(StartRefusedError) as many:
        cluster.replicas(spec([1, 16]))
    assert (many.value.code, many.value.message) == (
        9,
        "this local cloud runs at most 16 replicas of a job, and this one has 17. Rehearse it "
        "with a lower replicaCount: one worker more than the primary shows what many would.",
    )
    with pytest.raises(StartRefusedError) as reducing:
        cluster.replicas({"workerPoolSpecs": [{"containerSpec": {"imageUri": REDUCTION}}]})
    assert (reducing.value.code, reducing.value.message) == (
        9,
        "workerpool0-0 is a reduction server: it reduces gradients that NCCL sends from GPUs, and "
        "this machine has neither its image nor such workers. Rehearse the job without this pool: "
        "what it computes is the same.",
    )
    with pytest.raises(StartRefusedError) as memory:
        cluster.check_memory(2, 2 * 256 * 1024**2 - 1)
    assert (memory.value.code, memory.value.message) == (
        9,
        "2 replicas take 512 MiB before they hold any data, and this machine has 511 MiB free. "
        "Rehearse the job with a lower replicaCount, or end other programs.",
    )
    cluster.check_memory(2, 2 * 256 * 1024**2)


@pytest.mark.parametrize(
    ("image", "is_one"),
    [
        (REDUCTION, True),
        ("us-docker.pkg.dev/vertex-ai-restricted/training/reductionserver", True),
        ("us-docker.pkg.dev/vertex-ai-restricted/training/reductionserver@sha256:0", True),
        ("us-docker.pkg.dev/vertex-ai-restricted/training/reductionserver2:latest", False),
        ("us-docker.pkg.dev/acme/training/reductionserver:latest", False),
        ("", False),
    ],
)
def test_googles_reduction_server_is_told_by_its_image(image: str, is_one: bool) -> None:
    assert cluster.is_reduction_server(image) is is_one


def test_a_replica_has_a_name_and_a_task_of_its_pool() -> None:
    package, image = {"pythonModule": "a"}, {"imageUri": "x"}
    assert cluster.Replica(1, 2, {}).name == "workerpool1-2"
    assert cluster.Replica(0, 0, {}).task == {}
    assert cluster.Replica(0, 0, {"pythonPackageSpec": package}).task == package
    assert cluster.Replica(0, 0, {"containerSpec": image}).task == image
    # A pool that does not say how many has one (T:worker_pool_spec).
    assert cluster.replicas({"workerPoolSpecs": [{"containerSpec": image}]}) == [
        cluster.Replica(0, 0, {"containerSpec": image})
    ]
    assert (cluster.PORT, cluster.PRIMARY) == (2222, "workerpool0-0")


if __name__ == "__main__":
    for layout, counts in LAYOUTS.items():
        text = json.dumps(seen(counts), indent=2) + "\n"
        (FIXTURES / f"{layout}.json").write_text(text)
