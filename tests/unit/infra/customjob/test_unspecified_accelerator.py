"""A type that is named and unspecified says the same as none."""

from tests.unit.infra.customjob.test_rules import job, reported

MACHINE = {"machineType": "n1-standard-4"}
UNSPECIFIED = {"acceleratorType": "ACCELERATOR_TYPE_UNSPECIFIED"}


def accelerator_rules(machine):
    return {rule for rule in reported(job(machine)) if rule.startswith("accelerator")}


def test_it_needs_no_count():
    assert "accelerator-pair" not in accelerator_rules(MACHINE | UNSPECIFIED)
    assert "accelerator-machine" not in accelerator_rules(MACHINE | UNSPECIFIED)


def test_a_count_needs_a_type_all_the_same():
    given = MACHINE | UNSPECIFIED | {"acceleratorCount": 1}
    assert "accelerator-pair" in accelerator_rules(given)
    assert accelerator_rules(MACHINE | {"acceleratorCount": 1}) >= {"accelerator-pair"}
