"""Reads and changes of resources over REST, and the answers: stories in ``rest``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from localgcp.errors import ExchangeEndedError, RefusedRequestError
from localgcp.reads.secretmanager import add_version
from tests.unit.localcloud.rest_cloud import PROJECT, RestCloud
from tests.unit.localcloud.stories import Step, Stories, worded

STORIES = Stories(Path(__file__).parent / "rest", ("answer", "refused", "ended"))
VERBS = ("GET", "POST", "PUT", "PATCH", "DELETE")


def answer(cloud: RestCloud, read: dict[str, str], step: Step) -> Step:
    """The answer to one step; ``ETAG`` in a body is the first one read. Other steps prepare."""
    if "put" in step:
        project = step.get("project", PROJECT)
        cloud.put(f"gcp:{step['put']}", step["of"], project, **step.get("values", {}))
        return {}
    if "fault" in step:
        cloud.fault(step["fault"], **{key: step[key] for key in step if key != "fault"})
        return {}
    if "secret" in step:
        folder = cloud.store.path.parent / "secrets"
        add_version(folder, PROJECT, step["secret"], step["value"].encode())
        return {}
    verb = next(each for each in VERBS if each in step)
    body = step.get("body", "" if verb == "GET" else {})
    sent = body if isinstance(body, str) else json.dumps(body)
    sent = sent.replace("ETAG", read.get("etag", ""))
    try:
        found = cloud.reads.answer(verb, step[verb], sent.encode())
    except RefusedRequestError as error:
        return {"refused": [error.status, str(error)]}
    except ExchangeEndedError:
        return {"ended": True}
    document = json.loads(found or b"null")
    if isinstance(document, dict) and "etag" in document:
        read.setdefault("etag", document["etag"])
    return {"answer": worded(document)}


@pytest.mark.parametrize(("file", "story"), STORIES.parameters())
def test_each_request_is_answered_as_recorded(file: Path, story: str, tmp_path: Path) -> None:
    cloud = RestCloud(tmp_path)
    read = dict[str, str]()
    STORIES.check(file, story, lambda step: answer(cloud, read, step))
