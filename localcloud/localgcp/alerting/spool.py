"""Notifications as mail files, one for each channel. No notification is sent.

A file is written whole under another name first: who reads the folder sees no half of one.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from email.message import EmailMessage
from email.parser import BytesHeaderParser
from email.policy import default
from pathlib import Path
from typing import Final

from localgcp.home import open_private

STAND_IN: Final = "stand-in of the local cloud: no notification is sent"
_SUFFIX: Final = ".eml"
#: Prefix of the mail headers that contain labels.
_LABEL: Final = "X-Label-"


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
    message = EmailMessage(policy=default)
    message["Subject"] = _line(f"[ALERT] {note.title}")
    message["Date"] = note.time
    message["X-Local-Cloud"] = STAND_IN
    message["X-Channel"] = _line(note.channel)
    message["X-Alert"] = _line(note.alert)
    for label, value in note.labels.items():
        message[f"{_LABEL}{label}"] = _line(value)
    message.set_content(f"{note.text}\n\n-- \n{STAND_IN}\n")
    folder.mkdir(0o700, exist_ok=True)
    target = folder / f"{name}{_SUFFIX}"
    with open_private(target.with_suffix(".part"), "wb") as file:
        file.write(message.as_bytes())
    os.replace(target.with_suffix(".part"), target)


def read(folder: Path) -> list[Notification]:
    """Return all notifications without their texts, oldest first."""
    notifications = list[Notification]()
    for file in folder.glob(f"*{_SUFFIX}"):
        with file.open("rb") as content:
            head = BytesHeaderParser(policy=default).parse(content)
        labels = {
            name.removeprefix(_LABEL): str(value)
            for name, value in head.items()
            if name.startswith(_LABEL)
        }
        notifications.append(
            Notification(
                time=head["Date"].datetime,
                alert=str(head["X-Alert"]),
                title=str(head["Subject"]).removeprefix("[ALERT] "),
                channel=str(head["X-Channel"]),
                labels=labels,
            )
        )
    return sorted(
        notifications,
        key=lambda notification: (notification.time, notification.alert, notification.channel),
    )


def _line(text: str) -> str:
    """Return the text as one header line."""
    return " ".join(text.split())
