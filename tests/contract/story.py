"""One call of every method that is served, with an answer that is no refusal."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from string import Template
from typing import Any, Final

import yaml

from localgcp.vertex.records import LIVE_STATES, JobState
from tests.contract import description
from tests.contract.cloud import BUCKET, REGION, Answer, ContractCloud
from tests.contract.served import Call, calls
from tests.unit.localcloud.conftest import PROJECT, TRAINER, wait_until
from tests.unit.localcloud.serving.conftest import IMAGE, PROGRAM

_TEXT: Final = Template(Path(__file__).with_name("requests.yaml").read_text()).substitute(
    BUCKET=BUCKET, PROJECT=PROJECT, TRAINER=TRAINER, IMAGE=IMAGE, SERVER=PROGRAM,
    PYTHON=sys.executable,
)  # fmt: skip
_TABLES: Final[dict[str, Any]] = yaml.safe_load(_TEXT)
#: End of a path -> query and body of a call that is accepted. Others take an empty body.
REQUESTS: Final[dict[str, tuple[str, Any]]] = {
    end: (row.get("query", ""), row.get("body")) for end, row in _TABLES["requests"].items()
}
#: End of a path -> bodies of further calls of the method.
FURTHER: Final[dict[str, list[Any]]] = _TABLES["further"]
#: Served by a rule of its client, and here always refused: ``differences`` has the reason.
NOT_ANSWERED: Final = frozenset({
    "google.cloud.secretmanager.v1.SecretManagerService/AccessSecretVersion GET "
    "/v1/projects/{}/locations/{}/secrets/{}/versions/{}:access",
    "google.cloud.aiplatform.v1.PredictionService/Predict POST "
    "/v1/projects/{}/locations/{}/publishers/{}/models/{}:predict",
})  # fmt: skip


def _key(call: Call, table: Mapping[str, object]) -> str | None:
    skeleton = description.skeleton(call.template)
    return max((each for each in table if skeleton.endswith(each)), key=len, default=None)


def request_of(cloud: ContractCloud, call: Call) -> tuple[str, Any]:
    """Query and body of a call that is accepted."""
    skeleton = description.skeleton(call.template)
    end = _key(call, REQUESTS)
    found = REQUESTS[end] if end and call.verb not in ("GET", "DELETE") else None
    if call.verb == "GET":
        found = REQUESTS.get(skeleton[skeleton.rfind("/") :]) if "etworking" in call.id else None
        asked = ("/iam/testPermissions", "/v3/projects/{}/timeSeries")
        found = REQUESTS[end] if end in asked else found
    query, body = found or ("", {} if call.described and call.described.body else None)
    if call.described and not call.described.body:
        body = None
    return query, _links(cloud, skeleton, body)


def _links(cloud: ContractCloud, skeleton: str, body: Any) -> Any:
    """Bodies that name what was made before."""

    def last(collection: str) -> str:
        return next(name for name in reversed(cloud.names) if name.split("/")[-2] == collection)

    if skeleton.endswith(":deployModel"):
        deployed = {"id": "1", "model": last("models"), "dedicatedResources": _TABLES["resources"]}
        return {"deployedModel": deployed, "trafficSplit": {"0": 100}}
    return body


def tell(cloud: ContractCloud) -> Iterator[Answer]:
    """Call every method: what makes, then what reads and changes, then what deletes."""
    ended = False
    for call in sorted(calls(), key=_turn):
        if call.id in NOT_ANSWERED:
            continue
        if call.verb == "DELETE" and not ended:
            ended = True
            _end_jobs(cloud)
        query, body = request_of(cloud, call)
        further = FURTHER.get(_key(call, FURTHER) or "", ()) if call.verb == "POST" else ()
        for each in (body, *further):
            found = Answer(call, "", 0, "nothing in the cloud has a path like this")
            for path in cloud.paths(call):
                found = cloud.send(call, f"{path}?{query}" if query else path, each)
                if found.status == 200:
                    break
            yield found
            yield from _ended(cloud, found)


def _ended(cloud: ContractCloud, answer: Answer) -> Iterator[Answer]:
    """The operation or the job of BigQuery that was answered, when it has ended."""
    document, kind = answer.document, answer.call.described and answer.call.described.response
    if answer.status != 200:
        return
    if kind == "GoogleLongrunningOperation" and not document.get("done"):
        path = f"/v1/{document['name']}"
    elif kind == "Job" and "jobReference" in document and document["status"]["state"] != "DONE":
        path = f"/bigquery/v2/projects/{PROJECT}/jobs/{document['jobReference']['jobId']}"
    else:
        return
    get = replace(answer.call, verb="GET")

    def has_ended() -> bool:
        found = cloud.send(get, path).document
        return found.get("done") or found.get("status", {}).get("state") == "DONE"

    wait_until(has_ended)
    found = cloud.send(get, path)
    failure = found.document.get("error") or found.document.get("status", {}).get("errors")
    yield replace(found, call=answer.call, status=500 if failure else found.status)


def _end_jobs(cloud: ContractCloud) -> None:
    """Jobs that were cancelled end, as if they had run."""

    def all_ended() -> bool:
        for job in cloud.jobs.list():
            cloud.jobs.move(job.job_id, JobState.CANCELLED, only_from=LIVE_STATES)
        parent = f"/v1/projects/{PROJECT}/locations/{REGION}/hyperparameterTuningJobs"
        found = cloud.session.get(cloud.url + parent).json()["hyperparameterTuningJobs"]
        return all(each["state"] == "JOB_STATE_CANCELLED" for each in found)

    wait_until(all_ended)


def _turn(call: Call) -> tuple[int, int, bool]:
    skeleton = description.skeleton(call.template)
    end = skeleton.rpartition("/")[2]
    deep = skeleton.count("/")
    if call.verb == "DELETE":
        return 9, -deep, ":" not in end  # a version before its model
    if end == "removePeering" or end.endswith((":disable", ":cancel", ":undeployModel")):
        return 8, deep, False
    makes = call.verb == "POST" and (":" not in end or end == "models:upload") and end != "{}"
    return (0 if makes else 5), deep, False
