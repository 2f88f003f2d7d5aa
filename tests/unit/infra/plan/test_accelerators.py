"""The GPUs of one machine of a reservation."""

import pytest

from tests.unit.infra.stacks import H100, planned


def accelerators(**given):
    reservation = {key: value for key, value in (H100 | given).items() if value is not None}
    [plan] = planned(reservations={"mine": reservation}).reservations.values()
    return plan.accelerator_type, plan.accelerator_count


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"machineType": "n1-standard-8"}, ("", 0)),
        (
            {
                "machineType": "n1-standard-8",
                "acceleratorType": "NVIDIA_TESLA_T4",
                "acceleratorCount": 2,
            },
            ("NVIDIA_TESLA_T4", 2),
        ),
        ({"machineType": "a3-megagpu-8g"}, ("NVIDIA_H100_MEGA_80GB", 8)),
    ],
)
def test_they_are_those_given_or_those_the_machine_type_always_has(given, expected):
    assert accelerators(**given) == expected
