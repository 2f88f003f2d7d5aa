"""Every difference from Google's descriptions that is left, and the list of those that stay."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from localgcp.apis import discovery
from localgcp.apis.discovery import fields_of
from localgcp.apis.field_rules import is_required
from tests.contract import description, messages, served, storage, story
from tests.contract.cloud import Answer, ContractCloud
from tests.contract.served import Call

_MODELS: Final = "aiplatform.v1.projects.locations.publishers.models"
_EMULATORS: Final = (
    "acl[].projectTeam: NoneType where there is object",
    "created: unknown field",
    "deleted: unknown field",
)
#: Method, difference, and why it stays.
LISTED: Final = (
    ("compute.v1.networks.addPeering", "name is not asked for", "networkPeering has one"),
    (
        "batch.v1.projects.locations.jobs.cancel",
        "response: google.cloud.batch.v1.CancelJobResponse is no message of the description",
        "an empty message, which the description leaves out",
    ),
    ("storage.v1.buckets.setIamPolicy", "bindings is not asked for", "none removes all"),
    (
        "secretmanager.v1.projects.locations.secrets.versions.access",
        "always refused",
        "stacks have global secrets alone",
    ),
    (f"{_MODELS}.predict", "always refused", "models of publishers are not there"),
    (
        "aiplatform.v1 google.cloud.aiplatform.v1.Endpoint.privateModelServerEnabled",
        "the description has no such field",
        "the client is newer than the document",
    ),
    ("storage.v1.buckets.patch", "500", "answered beside the emulator, where vt drift asks"),
    *(
        (f"storage.v1.objects.{verb}", each, "the emulator's answer")
        for verb in ("patch", "update")
        for each in _EMULATORS
    ),
)


@dataclass(frozen=True)
class Comparison:
    """What was compared, and what differs."""

    answered: int
    answer_fields: int
    found: tuple[str, ...]


def listed() -> dict[str, str]:
    """Each difference that is known, and why it stays."""
    return {f"{method}: {text}": why for method, text, why in LISTED}


def of_answer(answer: Answer, compared: Counter[str]) -> Iterator[str]:
    """What an answer has that the description does not say."""
    call = answer.call
    assert call.described is not None
    if answer.status != 200:
        yield f"{call.described.id}: {answer.status} {answer.path} {answer.document}"
        return
    form = {"$ref": call.described.response} if call.described.response else {"type": "object"}
    for each in description.differences(answer.document, form, call.document, compared):
        yield f"{call.described.id}: {each}"


def _always_refused(cloud: ContractCloud, call: Call) -> Iterator[str]:
    skeleton = description.skeleton(call.template)
    assert call.described is not None
    if cloud.send(call, skeleton.replace("{}", "x")).status != 200:
        yield f"{call.described.id}: always refused"


def _not_asked_for() -> Iterator[str]:
    """Fields that a description calls required, and that are not asked for."""
    for id_, method in discovery.methods().items():
        service, version, place = id_.split(".", 2)
        name = method.request.removeprefix(f"{service}.{version}.")
        fields = description.schema(f"{service}.{version}", name)["properties"] if name else {}
        for field, each in fields.items():
            required = each.get("annotations", {}).get("required", ())
            if f"{service}.{place}" in required and not is_required(
                fields_of(method.request)[field]
            ):
                yield f"{id_}: {field} is not asked for"


def compare(cloud: ContractCloud, answers: Sequence[Answer]) -> Comparison:
    """Hold everything against the descriptions; ``answers`` are those of ``story.tell``."""
    compared = Counter[str]()
    _, found = messages.compared()
    differing = [*found, *_not_asked_for(), *storage.differences(cloud, compared)]
    for answer in answers:
        differing += of_answer(answer, compared)
    for call in served.calls():
        if call.described is None:
            differing.append(f"{call.id}: is no method of Google's")
        elif call.id in story.NOT_ANSWERED:
            differing += _always_refused(cloud, call)
    answered = len({answer.call for answer in answers})
    return Comparison(answered, len(compared), tuple(dict.fromkeys(differing)))
