"""Builds as files ``builds/ID/build.json`` and ``builds/ID/log.txt`` in the home folder."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Final

from google.cloud.devtools import cloudbuild_v1

from localgcp.vertex.log_entries import LogLine, lines_of

Build = cloudbuild_v1.Build
Status = cloudbuild_v1.Build.Status

#: States of a build that has not ended.
LIVE: Final = (Status.PENDING, Status.QUEUED, Status.WORKING)
#: Resource type of log entries.
RESOURCE: Final = "build"


class BuildTable:
    """The builds of all local projects, for use by several threads."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = threading.Lock()

    def add(self, build: Build) -> None:
        """Write a new build."""
        with self._lock:
            (self.folder / build.id).mkdir(parents=True)
            self._write(build)

    def get(self, build_id: str) -> Build | None:
        """Return the build with this id, or None."""
        if not re.fullmatch(r"[0-9a-f-]{1,64}", build_id):
            return None
        try:
            text = (self.folder / build_id / "build.json").read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        return Build.from_json(text)  # pyright: ignore[reportReturnType]

    def all(self) -> list[Build]:
        """Return the builds, newest first."""
        names = [path.parent.name for path in self.folder.glob("*/build.json")]
        builds = [build for name in names if (build := self.get(name))]
        return sorted(builds, key=lambda build: (build.create_time, build.id), reverse=True)  # pyright: ignore[reportCallIssue, reportArgumentType]

    def change(self, build_id: str, change: Callable[[Build], None]) -> bool:
        """Change an active build; return False for a missing or ended build."""
        with self._lock:
            build = self.get(build_id)
            if build is None or build.status not in LIVE:
                return False
            change(build)
            self._write(build)
            return True

    def log(self, build_id: str) -> Path:
        """Return the path of a build's log."""
        return self.folder / build_id / "log.txt"

    def work(self, build_id: str) -> Path:
        """Return the work folder of a running build."""
        return self.folder / build_id / "work"

    def lines(self, project: str, equal: Mapping[str, str]) -> Iterator[LogLine]:
        """Yield the log lines of the build in a filter's labels."""
        build = self.get(equal.get("resource.labels.build_id", ""))
        if build is None or build.project_id != project:
            return
        labels = {"build_id": build.id, "project_id": project}
        created: datetime = build.create_time  # pyright: ignore[reportAssignmentType]
        first = LogLine(f"projects/{project}/logs/cloudbuild", RESOURCE, labels, created, build.id)
        if (log := self.log(build.id)).exists():
            yield from lines_of(log, first, ended=build.status not in LIVE)

    def _write(self, build: Build) -> None:
        target = self.folder / build.id / "build.json"
        partial = target.with_suffix(".tmp")
        partial.write_text(Build.to_json(build), encoding="utf-8")
        partial.replace(target)
