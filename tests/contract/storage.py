"""Cloud Storage, which an emulator of others answers, beside Google's description of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

from tests.contract import description
from tests.contract.cloud import ContractCloud
from tests.unit.localcloud.conftest import PROJECT

DOCUMENT: Final = "storage.v1"
BOX: Final = "contract-box"
#: Id of a method in ``storage.v1`` -> path below ``/storage/v1`` and body, in their order.
CALLS: Final[Mapping[str, tuple[str, Any]]] = {
    "buckets.insert": (f"/b?project={PROJECT}", {"name": BOX, "location": "US-CENTRAL1"}),
    "buckets.get": (f"/b/{BOX}", None),
    "buckets.list": (f"/b?project={PROJECT}", None),
    "buckets.getStorageLayout": (f"/b/{BOX}/storageLayout", None),
    "buckets.patch": (f"/b/{BOX}", {"versioning": {"enabled": True}}),
    "objects.insert": (f"/b/{BOX}/o?uploadType=media&name=a.txt", "text"),
    "objects.get": (f"/b/{BOX}/o/a.txt", None),
    "objects.list": (f"/b/{BOX}/o", None),
    "objects.patch": (f"/b/{BOX}/o/a.txt", {"metadata": {"k": "v"}, "contentType": "text/css"}),
    "objects.update": (f"/b/{BOX}/o/a.txt", {"metadata": {"k": "w"}}),
    "objects.compose": (f"/b/{BOX}/o/b.txt/compose", {"sourceObjects": [{"name": "a.txt"}]}),
    "objects.rewrite": (f"/b/{BOX}/o/a.txt/rewriteTo/b/{BOX}/o/c.txt", {}),
    "objects.copy": (f"/b/{BOX}/o/a.txt/copyTo/b/{BOX}/o/d.txt", {}),
    "objects.delete": (f"/b/{BOX}/o/a.txt", None),
    "managedFolders.list": (f"/b/{BOX}/managedFolders", None),
}
#: What is asked for and is not there.
MISSING: Final = {"buckets.get": "/b/no-such-box", "objects.get": f"/b/{BOX}/o/none"}


def differences(cloud: ContractCloud, compared: Counter[str]) -> Iterator[str]:
    """``METHOD: place: difference`` of each answer."""
    known = {each.id.removeprefix(f"{DOCUMENT}."): each for each in description.methods(DOCUMENT)}
    for id_, (path, body) in CALLS.items():
        method = known[id_]
        base = "/upload/storage/v1" if isinstance(body, str) else "/storage/v1"
        given: dict[str, Any] = {"data": body} if isinstance(body, str) else {"json": body}
        answer = cloud.session.request(method.verb, cloud.storage + base + path, **given)
        if not answer.ok:
            yield f"{DOCUMENT}.{id_}: {answer.status_code}"
        elif answer.content and method.response:
            form = {"$ref": method.response}
            for each in description.differences(answer.json(), form, DOCUMENT, compared):
                yield f"{DOCUMENT}.{id_}: {each}"
    for id_, path in MISSING.items():
        answer = cloud.session.get(f"{cloud.storage}/storage/v1{path}")
        error = answer.json().get("error", {})
        if answer.status_code != 404 or error.get("code") != 404 or not error.get("message"):
            yield f"{DOCUMENT}.{id_}: error: {answer.status_code} {answer.text[:80]}"
