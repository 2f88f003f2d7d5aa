"""What the local cloud and the program both know, though neither imports the other."""

from __future__ import annotations

from localgcp.bigquery import catalog, jobs
from localgcp.inventory import machines as built_in
from vertex_training.catalog import machines
from vertex_training.snapshots import estimate


def test_the_gpus_of_machine_types_are_those_of_the_catalogue() -> None:
    implied = {}
    for name, machine in machines.machine_types().items():
        if machine.accelerator_required and len(machine.accelerators) == 1:
            [(gpu, counts)] = machine.accelerators.items()
            if len(counts) == 1:
                implied[name] = (gpu, counts[0])
    assert implied == built_in.BUILT_IN_GPUS


def test_what_cannot_be_peered_is_what_the_catalogue_says() -> None:
    without = {name for name, each in machines.accelerators().items() if not each.vpc_peering}
    assert without == built_in.WITHOUT_VPC_PEERING


def test_both_sides_bill_the_same_bytes_at_least_and_look_back_as_far() -> None:
    assert jobs.LEAST_BILLED == estimate.LEAST_BILLED
    assert estimate.TIME_TRAVEL.total_seconds() * 1000 == catalog.KEPT_MILLISECONDS
