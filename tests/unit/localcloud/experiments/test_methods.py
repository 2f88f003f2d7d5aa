"""The methods of each collection of experiments: their names, their types, and what they answer."""

from __future__ import annotations

from typing import Any

import pytest
from google.cloud import aiplatform_v1 as vertex
from google.longrunning import operations_pb2
from google.protobuf import empty_pb2, field_mask_pb2

from localgcp.experiments.tensorboards import EXPERIMENTS, RUNS
from tests.unit.localcloud.experiments.test_resources import BOX, PLACE, Served, clock, served

__all__ = ["clock", "served"]
BOARD = f"{PLACE}/tensorboards/7"
RUN = f"{BOARD}/experiments/e/runs/r"


@pytest.fixture
def filled(served: Served) -> Served:
    """With an instance, an experiment and a run."""
    served.boards._instances.put({"name": BOARD, "createTime": "2026-01-02T03:04:05Z"})
    for below, id_ in ((EXPERIMENTS, "e"), (RUNS, "r")):
        parent = BOARD if below is EXPERIMENTS else f"{BOARD}/experiments/e"
        served.boards.create(below, parent, below.message(display_name=id_), id_, None)
    return served


def title(noun: str) -> str:
    return noun.title().replace("_", "")


def answer(made: Any, kind: Any) -> Any:
    """The resource of an answer, which may be an operation that has ended."""
    if not isinstance(made, operations_pb2.Operation):
        assert isinstance(made, kind)
        return made
    assert made.done
    return kind.deserialize(made.response.value)


@pytest.mark.parametrize(
    ("service", "noun", "plural", "parent", "below", "begins_operation"),
    [
        ("metadata", "metadata_store", "metadata_stores", PLACE, "metadataStores", "create"),
        ("metadata", "artifact", "artifacts", BOX, "artifacts", ""),
        ("metadata", "context", "contexts", BOX, "contexts", ""),
        ("metadata", "execution", "executions", BOX, "executions", ""),
        ("boards", "tensorboard", "tensorboards", PLACE, "tensorboards", "create update"),
        ("boards", "tensorboard_experiment", "tensorboard_experiments", BOARD, "experiments", ""),
        ("boards", "tensorboard_run", "tensorboard_runs", f"{BOARD}/experiments/e", "runs", ""),
        ("boards", "tensorboard_time_series", "tensorboard_time_series", RUN, "timeSeries", ""),
    ],
)
def test_a_resource_is_made_got_listed_changed_and_deleted(
    filled: Served, service: str, noun: str, plural: str, parent: str, below: str,
    begins_operation: str,
) -> None:  # fmt: skip
    methods: Any = getattr(filled, service)
    kind, named = getattr(vertex, title(noun)), title(noun)

    def call(verb: str, about: str, **given: Any) -> Any:
        words = title(about)
        request = getattr(vertex, f"{verb.title()}{words}Request")(given)
        return getattr(methods, f"{verb}_{about}")(request, None)

    id_ = {} if noun == "tensorboard" else {f"{noun}_id": "x"}
    made = call("create", noun, parent=parent, **id_, **{noun: {"description": "old"}})
    assert isinstance(made, operations_pb2.Operation) is ("create" in begins_operation)
    if "create" in begins_operation:
        metadata = f"google.cloud.aiplatform.v1.Create{named}OperationMetadata"
        assert made.metadata.type_url == f"type.googleapis.com/{metadata}"
    resource = answer(made, kind)
    name = resource.name
    assert name.startswith(f"{parent}/{below}/")
    assert id_ == {} or name == f"{parent}/{below}/x"
    assert call("get", noun, name=name) == resource
    listed = call("list", plural, parent=parent)
    assert isinstance(listed, getattr(vertex, f"List{title(plural)}Response"))
    assert resource in list(getattr(listed, plural))
    if noun != "metadata_store":
        mask = field_mask_pb2.FieldMask(paths=["description"])
        changed = call(
            "update", noun, update_mask=mask, **{noun: {"name": name, "description": "new"}}
        )
        assert isinstance(changed, operations_pb2.Operation) is ("update" in begins_operation)
        if "update" in begins_operation:
            metadata = f"google.cloud.aiplatform.v1.Update{named}OperationMetadata"
            assert changed.metadata.type_url == f"type.googleapis.com/{metadata}"
        assert answer(changed, kind).description == "new"
    gone = call("delete", noun, name=name)
    assert gone.done
    assert gone.response.Is(empty_pb2.Empty.DESCRIPTOR)
    assert name not in [each.name for each in getattr(call("list", plural, parent=parent), plural)]
