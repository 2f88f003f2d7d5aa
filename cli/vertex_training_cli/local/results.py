"""What is left of a job: its record, and the numbers of its metrics.json, by the emulator."""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
from typing import Final, Protocol

from localgcp.home import Home
from localgcp.tuning.records import TuningTable
from localgcp.vertex.records import JobRecord, JobTable
from vertex_training_cli.jobs import metrics as measured

NOTHING_THERE: Final = (
    "nothing is there: it wrote none, or they were removed; raise `run` to run it again"
)

_TIMEOUT_SECONDS: Final = 10


def metrics(job: JobRecord, storage_port: int) -> dict[str, float]:
    """Numbers at the top of the job's metrics.json; empty if it wrote none.

    Any object of that name below ``baseOutputDirectory`` counts; the one nearest to it is taken.
    """
    if job.output_prefix is None:
        return {}
    bucket, _, prefix = job.output_prefix.removeprefix("gs://").partition("/")
    base = f"http://127.0.0.1:{storage_port}/storage/v1/b/{bucket}/o"
    listed = _get(f"{base}?{urllib.parse.urlencode({'prefix': f'{prefix}/'})}")
    names = [item["name"] for item in json.loads(listed).get("items", [])] if listed else []
    found = sorted((n for n in names if n.endswith("/metrics.json")), key=lambda n: n.count("/"))
    if not found:
        return {}
    body = _get(f"{base}/{urllib.parse.quote(found[0], safe='')}?alt=media")
    return measured.numbers(measured.parsed(body)) if body else {}


def artifacts(home: Home, job: JobRecord) -> tuple[str, str] | None:
    """Where the job's output is: (gs:// URI, folder of the emulator), or None.

    Where nothing is, the second says so. A job outlives its buckets: after ``pulumi destroy`` the
    next ``up`` adopts it as the run it was asked for.
    """
    if job.output_prefix is None:
        return None
    folder = home.storage / job.output_prefix.removeprefix("gs://")
    return f"{job.output_prefix}/", str(folder) if folder.is_dir() else NOTHING_THERE


def _get(url: str) -> bytes | None:
    """The body, or None where there is no such bucket or object."""
    try:
        with urllib.request.urlopen(url, timeout=_TIMEOUT_SECONDS) as answer:
            return answer.read()
    except urllib.error.HTTPError as error:
        if error.code == 404:
            return None
        raise


class JobLookup(Protocol):
    """Finds the record of a job."""

    def get(self, job_id: str) -> JobRecord | None: ...


class StackRecords:
    """Finds records of both kinds. No two jobs have the same id."""

    def __init__(self, home: Home) -> None:
        self._jobs, self._tuning_jobs = JobTable(home.database), TuningTable(home.database)

    def get(self, job_id: str) -> JobRecord | None:
        """The job or tuning job; None if its record was deleted."""
        return self._jobs.get(job_id) or self._tuning_jobs.get(job_id)
