"""The sharded training: its configuration, and which files of a checkpoint a process takes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from arr_coc.parts import files_of
from vertex_job.checkpoints import Checkpoint
from vertex_job.errors import CheckpointError
from vertex_job.stores import DiskStore

from tests.fixture_project import SAMPLES, sample

FOLDER = SAMPLES / "arr_coc"


def configuration(name: str) -> dict[str, Any]:
    return json.loads((FOLDER / name).read_text("utf-8"))


def pools(file: str) -> list[dict[str, Any]]:
    spec = yaml.safe_load(sample(file).read_text("utf-8"))
    return spec.get("jobSpec", spec)["workerPoolSpecs"]


def test_the_configuration_for_a100_is_json_and_fits_the_gpus_of_its_job() -> None:
    config = configuration("zero2.json")
    assert config["zero_optimization"]["stage"] == 2
    # Reduction servers serve all-reduce alone.
    assert config["zero_optimization"]["reduce_scatter"] is False
    nodes = [pool for pool in pools("arr-coc-a100-reduction.yaml") if len(pool["machineSpec"]) > 1]
    gpus = sum(p["replicaCount"] * p["machineSpec"]["acceleratorCount"] for p in nodes)
    assert config["train_batch_size"] % (config["train_micro_batch_size_per_gpu"] * gpus) == 0


def test_the_configuration_for_processors_is_json_compiles_nothing_and_fits_its_job() -> None:
    config = configuration("zero2-cpu.json")
    assert config["zero_optimization"]["stage"] == 2
    assert config["optimizer"]["params"]["torch_adam"] is True
    count = sum(pool["replicaCount"] for pool in pools("arr-coc-cpu.yaml"))
    assert config["train_batch_size"] % (config["train_micro_batch_size_per_gpu"] * count) == 0


def test_package_and_image_have_the_same_versions() -> None:
    pinned = re.compile(r"^([a-z0-9-]+)==(\S+)", re.MULTILINE)
    package = dict(pinned.findall((FOLDER / "requirements.txt").read_text("utf-8")))
    image = dict(pinned.findall((FOLDER / "image.lock").read_text("utf-8")))
    assert package
    assert package.items() <= image.items()


def saved_by(world: int, prefix: str = "") -> Checkpoint:
    parts = [f"{prefix}zero_pp_rank_{n}_mp_rank_00_optim_states.pt" for n in range(world)]
    files = {name: (1, "") for name in ["mp_rank_00_model_states.pt", *parts]}
    return Checkpoint(DiskStore(Path("nowhere")), 50, files)


@pytest.mark.parametrize("prefix", ["", "bf16_"])
def test_a_process_takes_the_weights_and_its_own_part(prefix: str) -> None:
    assert files_of(saved_by(12, prefix), 1, 12) == [
        "mp_rank_00_model_states.pt",
        f"{prefix}zero_pp_rank_1_mp_rank_00_optim_states.pt",
    ]


@pytest.mark.parametrize(("saved", "now"), [(2, 1), (2, 3), (0, 1)])
def test_another_number_of_processes_is_refused_with_what_to_do(saved: int, now: int) -> None:
    with pytest.raises(CheckpointError) as failed:
        files_of(saved_by(saved), 0, now)
    assert f"was saved by {saved} processes, not {now}" in str(failed.value)
    assert "another output folder" in str(failed.value)
