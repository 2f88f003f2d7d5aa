"""Builds by their service alone: what is accepted, listed, found and cancelled."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any, cast

import pytest
from google.cloud.devtools import cloudbuild_v1

from localgcp.cloudbuild import checks
from localgcp.cloudbuild.records import Build, BuildTable, Status
from localgcp.cloudbuild.service import BuildService
from localgcp.errors import ApiError
from localgcp.inventory.store import project_number

PROJECT = "local-training"
PLACE = f"projects/{project_number(PROJECT)}/locations/us-central1"


class Served:
    """The service, over a runner that runs nothing."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.builds, self.calls = BuildTable(root / "builds"), list[tuple[str, str]]()
        self.storage_url = "http://s"

        def resolve(_store: Any, parent: str) -> tuple[str, str]:
            parts = parent.split("/")
            return PROJECT if parts[1] != "other" else "other", (parts[3:] or ["global"])[0]

        monkeypatch.setattr(checks, "resolve_parent", resolve)
        monkeypatch.setattr(checks, "check_build", lambda *_: None)
        monkeypatch.setattr(checks, "resolve_source", lambda *_: 5)
        self.service = BuildService(cast(Any, None), self.builds, cast(Any, self))

    def start(self, id_: str, _access: Any) -> None:
        self.calls.append(("start", id_))

    def cancel(self, id_: str) -> None:
        self.calls.append(("cancel", id_))

    def create(self, **changes: Any) -> tuple[Any, Build]:
        source = {"storage_source": {"bucket": "b", "object_": "o"}}
        made = Build({"tags": ["t"], "source": source, **changes})
        request = cloudbuild_v1.CreateBuildRequest(parent=f"{PLACE}", build=made)
        operation = self.service.create_build(request)
        metadata = cloudbuild_v1.BuildOperationMetadata.deserialize(operation.metadata.value)
        return operation, metadata.build

    def list(self, text: str = "", **request: Any) -> tuple[list[str], str]:
        asked = cloudbuild_v1.ListBuildsRequest(parent=PLACE, filter=text, **request)
        found = self.service.list_builds(asked)
        return [each.id for each in found.builds], found.next_page_token


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Served:
    return Served(tmp_path, monkeypatch)


def refused(call: Any, *args: Any, **more: Any) -> tuple[str, str]:
    with pytest.raises(ApiError) as error:
        call(*args, **more)
    return error.value.code.name, error.value.message


def test_builds_are_listed_by_place_and_filter(served: Served) -> None:
    ids = [served.create(tags=[tag])[1].id for tag in ("a", "b", "a")]
    served.builds.change(ids[0], lambda each: setattr(each, "status", Status.SUCCESS))
    time = datetime.datetime.now(tz=datetime.UTC)
    foreign = Build(
        id="ff",
        project_id=PROJECT,
        name="projects/1/locations/us-central1/builds/ff",
        create_time=time,
    )
    served.builds.add(foreign)
    assert sorted(served.list()[0]) == sorted(ids)
    assert sorted(served.list('tags="a"')[0]) == sorted([ids[0], ids[2]])
    assert served.list(' tags = "a"  AND status="SUCCESS" ')[0] == [ids[0]]
    assert served.list(f'build_id="{ids[1]}"')[0] == [ids[1]]
    first, token = served.list(page_size=2)
    assert (len(first), token) == (2, "2")
    assert len(served.list(page_size=2, page_token="2")[0]) == 1
    assert served.list(page_size=3)[1] == ""
    for text in ("tags=a", 'tags="a" OR tags="b"', 'images="x"'):
        assert refused(served.list, text)[1].endswith("(the local cloud knows few)")
    assert refused(served.list, page_size=-1) == (
        "INVALID_ARGUMENT", "page_size must not be negative, got -1.",
    )  # fmt: skip
    for token in ("x", "-1", "1\n", "9" * 10):
        assert refused(served.list, page_token=token) == (
            "INVALID_ARGUMENT", f"Invalid page token: {token!r}.",
        )  # fmt: skip
    whole = cloudbuild_v1.ListBuildsRequest(project_id=PROJECT)
    assert list(served.service.list_builds(whole).builds) == []


def test_a_build_that_has_ended_cannot_be_cancelled(served: Served) -> None:
    _, made = served.create()
    request = cloudbuild_v1.CancelBuildRequest(project_id=PROJECT, id=made.id)
    assert served.service.cancel_build(request) == made
    assert served.calls[1:] == [("cancel", made.id)]
    served.builds.change(made.id, lambda each: setattr(each, "status", Status.SUCCESS))
    assert refused(served.service.cancel_build, request) == (
        "FAILED_PRECONDITION", "cannot cancel a build that has completed",
    )  # fmt: skip
    assert len(served.calls) == 2
