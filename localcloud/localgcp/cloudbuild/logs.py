"""Lines of a build's log as entries of Cloud Logging."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Final

from google.api import monitored_resource_pb2
from google.cloud.logging_v2 import types

from localgcp.cloudbuild.records import LIVE, BuildTable

RESOURCE: Final = "build"
ID_LABEL: Final = "resource.labels.build_id"


def entries_of(builds: BuildTable) -> Callable[[str, dict[str, str]], Iterator[types.LogEntry]]:
    """What reads the entries of a project's build, by the labels of a filter."""

    def read(project: str, equal: dict[str, str]) -> Iterator[types.LogEntry]:
        build = builds.get(equal.get(ID_LABEL, ""))
        if build is None or build.project_id != project:
            return
        ended = build.status not in LIVE
        try:
            text = builds.log(build.id).read_bytes().decode(errors="replace")
        except FileNotFoundError:
            return
        lines = text.split("\n")
        if not lines[-1] or not ended:
            lines.pop()  # nothing, or a line that is still being written
        labels = {"build_id": build.id, "project_id": project}
        resource = monitored_resource_pb2.MonitoredResource(type=RESOURCE, labels=labels)
        created: datetime = build.create_time  # pyright: ignore[reportAssignmentType]
        for number, line in enumerate(lines):
            yield types.LogEntry(
                log_name=f"projects/{project}/logs/cloudbuild",
                resource=resource,
                text_payload=line,
                timestamp=created + timedelta(milliseconds=number),
                insert_id=f"{build.id}-{number:09}",
                severity="INFO",
            )

    return read
