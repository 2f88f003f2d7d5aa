"""Answers of Cloud Storage that the emulator does not give, and ``gcloud storage`` needs (pure).

- ``GET b/BUCKET/storageLayout`` (storage/docs/json_api/v1/buckets/getStorageLayout): the emulator
  has no such method. ``layout_source`` is the request in its place, and ``completed`` makes the
  layout of the answer. Likewise ``managedFolders``, of which there are none: without it
  ``gcloud storage rm --recursive`` removes the objects of a bucket and not the bucket.
- The service answers a deletion with 204 and nothing; the emulator with 200 and ``null``, of which
  gcloud makes an error after the object is gone.
"""

from __future__ import annotations

import json
import re
from typing import Final

#: Status, headers and body.
Answer = tuple[int, list[tuple[str, str]], bytes]

_LAYOUT: Final = re.compile(
    r"(?P<bucket>/storage/v1/b/[^/?]+)/(?P<what>storageLayout|managedFolders)(?:\?.*)?"
)


def layout_source(verb: str, target: str) -> str | None:
    """What to get from the emulator for a request of a bucket's layout or managed folders; None for
    any other.
    """
    found = _LAYOUT.fullmatch(target) if verb == "GET" else None
    return found["bucket"] if found else None


def completed(verb: str, target: str, answer: Answer) -> Answer:
    """The service's answer to a request that the emulator answered so."""
    status, headers, body = answer
    if status != 200:
        return answer
    if verb == "DELETE" and body.strip() in (b"", b"null"):
        return 204, [each for each in headers if not each[0].lower().startswith("content-")], b""
    found = _LAYOUT.fullmatch(target) if verb == "GET" else None
    if found is None:
        return answer
    if found["what"] == "managedFolders":
        return status, headers, b'{"kind": "storage#managedFolders"}'
    bucket = json.loads(body)
    layout = {
        "kind": "storage#storageLayout",
        "bucket": bucket["name"],
        "location": bucket.get("location", "US"),
        "locationType": bucket.get("locationType", "region"),
        "hierarchicalNamespace": {"enabled": False},
    }
    return status, headers, json.dumps(layout).encode()
