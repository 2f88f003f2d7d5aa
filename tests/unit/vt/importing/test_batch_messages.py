"""Jobs of Google Batch as messages: what is read of JSON, and which field is left out."""

from __future__ import annotations

from typing import Any

import pytest

from vertex_training.errors import CommandError
from vertex_training_cli.importing import batch_messages
from vertex_training_cli.importing.batch_messages import BatchMessage
from vertex_training_cli.importing.imported import Scalar

LISTS = ("taskGroups", "runnables", "networkInterfaces", "instances", "accelerators", "volumes")


def message(path: str, value: Any = 1) -> dict[str, Any]:
    """A message with one field; what is a list in the API is one."""
    for part in reversed(path.split(".")):
        value = {part: [value] if part in LISTS and isinstance(value, dict) else value}
    return value


def test_environments_are_somebodys_own_names() -> None:
    given = message("taskGroups.taskSpec.environments", {"A": {"b": 1}})
    assert batch_messages.left_out(given) == ([], [])
    assert batch_messages.left_out({}) == ([], [])


@pytest.mark.parametrize(
    ("given", "fields", "remarks"),
    [
        ({"task_groups": [{"task_count": 2, "taskCountPerNode": "3"}]},
         {"taskGroups": [{"taskCount": "2", "taskCountPerNode": "3"}]}, []),
        ({"name": "n", "uid": 3, "create_time": "x", "updateTime": [], "status": "s"},
         {"name": "n"}, []),
        ({"taskGroups": [{"taskCount": Scalar("~"), "parallelism": 0}]},
         {"taskGroups": [{}]}, []),
        ({"tomorrow": 1, "taskGroups": [{"a_b": {"c": 1}}]}, {"taskGroups": [{}]},
         ["tomorrow is no field of Batch's, which refuses it",
          "taskGroups[0].a_b is no field of Batch's, which refuses it"]),
        ({"allocationPolicy": {"instanceFlexibilityPolicy": {}}}, {"allocationPolicy": {}},
         ["allocationPolicy.instanceFlexibilityPolicy is left out: Google's client does not send "
          "it: choose one machine type"]),
        ({"labels": {"b": 1, "a": True}}, {"labels": {"b": "1", "a": "True"}}, []),
        ({"logsPolicy": {"destination": "CLOUD_LOGGING"}},
         {"logsPolicy": {"destination": "CLOUD_LOGGING"}}, []),
    ],
)  # fmt: skip
def test_a_job_is_read_by_googles_own_class(
    given: dict[str, Any], fields: dict[str, Any], remarks: list[str]
) -> None:
    assert batch_messages.parsed(given) == BatchMessage(fields, remarks)


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("<TASKS>", "<YOUR_TASKS>"), ("<your tasks>", "<YOUR_TASKS>"), ("$TASKS", "<YOUR_TASKS>"),
        ("${task_count}", "<TASK_COUNT>"), ("{{ tasks }}", "<YOUR_TASKS>"),
        ("{tasks}", "<YOUR_TASKS>"), ("YOUR_TASKS", "<YOUR_TASKS>"), ("TASK_COUNT", "<TASK_COUNT>"),
    ],
)  # fmt: skip
def test_a_number_that_is_to_be_filled_in_stays_open(value: str, found: str) -> None:
    given = {"taskGroups": [{"parallelism": 1}, {"taskCount": value}]}
    assert batch_messages.parsed(given).fields == {
        "taskGroups": [{"parallelism": "1"}, {"taskCount": found}]
    }


@pytest.mark.parametrize(
    ("codes", "found"),
    [(["$CODE"], ["<YOUR_CODE>"]), (["<A>", "5", "<B>", 7], [5, 7, "<YOUR_A>", "<YOUR_B>"])],
)
def test_a_number_of_a_list_that_is_to_be_filled_in_stays_open(
    codes: list[Any], found: list[Any]
) -> None:
    def message(codes: list[Any]) -> dict[str, Any]:
        policies = [{}, {"actionCondition": {"exitCodes": codes}}]
        return {"taskGroups": [{"taskSpec": {"lifecyclePolicies": policies}}]}

    assert batch_messages.parsed(message(codes)) == BatchMessage(message(found))


@pytest.mark.parametrize(
    "given",
    [
        {"taskGroups": [{"taskCount": "many"}]},
        {"taskGroups": [{"requireHostsFile": "TASKS"}]},
        {"allocationPolicy": {"instances": [{"policy": {"provisioningModel": "FASTER"}}]}},
        {"taskGroups": 3},
        {"labels": ["a"]},
        {"priority": {"a": 1}},
    ],
)
def test_what_is_no_job_of_batch_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(CommandError) as told:
        batch_messages.parsed(given)
    assert told.value.message.startswith("this is no job of Batch: Failed to parse ")
    assert told.value.message.count("Failed to parse") == 1
    assert "\n" not in told.value.message
    assert not told.value.message.endswith("..")
