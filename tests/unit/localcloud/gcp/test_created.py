"""What the stand-in creates looks as the official plugin 9.35.0 returned it, for every type."""

from __future__ import annotations

import json
import re
from typing import Any

from localgcp.gcp.codec import plain
from localgcp.inventory.store import project_number

# Named by the service; here the name of the row is enough.
NUMBERED = {"tb", "mail", "gpu-idle", "cap"}


def moved(value: Any, made: list[Any]) -> Any:
    """A value observed in p1, host1 and svc1, as it is in local projects."""
    text = _local(json.dumps(plain(value)))
    for row, real, _ in made:
        if row["name"] in NUMBERED:
            text = text.replace(_local(row["id"]), real)
    return json.loads(text)


def _local(text: str) -> str:
    moved = re.sub(
        r'(?:(?<=[/"])|(?<=2F))(p1|host1|svc1)(?=[/"%])|(?<=@)p1(?=\.)', r"local-\g<0>", text
    )
    return moved.replace("18022562", project_number("local-p1"))
