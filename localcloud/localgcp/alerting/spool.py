"""Notifications as JSON files, one for each channel. No notification is sent.

A file is written whole under another name first: readers of the folder see no half of one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from localgcp.home import open_private

STAND_IN: Final = "stand-in of the local cloud: no notification is sent"
_SUFFIX: Final = ".json"


@dataclass(frozen=True)
class Notification:
    """A notification for one channel, written to a file instead of sent."""

    time: datetime
    alert: str
    """Id of the alert policy."""
    title: str
    channel: str
    """Type and address of the channel, like ``email ml@example.com``."""
    labels: Mapping[str, str]
    """Labels extracted from the log line, like ``job_id``."""
    text: str = ""


def write(folder: Path, note: Notification, name: str) -> None:
    """Write a notification; replaces one of the same name."""
    folder.mkdir(0o700, exist_ok=True)
    target = folder / f"{name}{_SUFFIX}"
    document = {"note": STAND_IN, **asdict(note), "time": note.time.isoformat()}
    with open_private(target.with_suffix(".part"), "wb") as file:
        file.write(json.dumps(document, indent=2).encode() + b"\n")
    os.replace(target.with_suffix(".part"), target)


def read(folder: Path) -> list[Notification]:
    """Return all notifications, oldest first."""
    notifications = list[Notification]()
    for file in folder.glob(f"*{_SUFFIX}"):
        document = json.loads(file.read_bytes())
        del document["note"]
        time = datetime.fromisoformat(document.pop("time"))
        notifications.append(Notification(time, **document))
    return sorted(notifications, key=lambda note: (note.time, note.alert, note.channel))
