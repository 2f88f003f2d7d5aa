"""Machines of scripts: the cheapest that has the requested GPUs."""

from __future__ import annotations

import doctest

import pytest

from vertex_training_cli.help import verbs
from vertex_training_cli.run.script import choose_machine


@pytest.mark.parametrize(
    ("gpus", "name", "machine", "accelerator"),
    [
        (0, "", "n1-standard-4", None),
        (0, "n1-highmem-8", "n1-highmem-8", None),
        (1, "", "n1-highmem-2", "NVIDIA_TESLA_T4"),
        (8, "", "g2-standard-96", "NVIDIA_L4"),
        (16, "", "a2-megagpu-16g", "NVIDIA_TESLA_A100"),
        (2, "n1-standard-8", "n1-standard-8", "NVIDIA_TESLA_T4"),
        (0, "a3-megagpu-8g", "a3-megagpu-8g", "NVIDIA_H100_MEGA_80GB"),
    ],
)
def test_a_script_gets_the_cheapest_machine_with_so_many_gpus(
    gpus: int, name: str, machine: str, accelerator: str | None
) -> None:
    spec = choose_machine(gpus, name)
    assert (spec["machineType"], spec.get("acceleratorType")) == (machine, accelerator)
    if gpus:
        assert spec["acceleratorCount"] == gpus


def test_an_option_may_stand_without_its_number() -> None:
    assert doctest.testmod(verbs).failed == 0
