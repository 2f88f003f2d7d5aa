"""The local cloud's BigQuery by its REST, as a team that loads tables uses it."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable
from typing import Any, Final

import requests

from localgcp.bigquery import PINS, engine_environment
from localgcp.home import Ports
from vertex_training_cli.setup import install_once

#: Where the files lie that are loaded.
RAW: Final = "raw"
LOCATION: Final = "us-central1"


def install_engine() -> str:
    """Install the engine as ``vt local bigquery --install`` does; its Python."""
    own = engine_environment()
    install_once(own.folder, own.marker, PINS, "BigQuery's engine")
    return str(own.python)


class Warehouse:
    """BigQuery of one project."""

    def __init__(self, ports: Ports, project: str) -> None:
        self.project = project
        self._url = f"http://127.0.0.1:{ports.vertex}/bigquery/v2/projects/{project}"
        self._storage = f"http://127.0.0.1:{ports.storage}"
        self._session = requests.Session()
        self._session.trust_env = False

    def call(self, verb: str, path: str, body: Any = None) -> dict[str, Any]:
        """The answer of one call, which must be one."""
        answer = self._session.request(verb, f"{self._url}/{path}", json=body)
        assert answer.ok, answer.text
        return answer.json()

    def make_dataset(self, name: str) -> None:
        """Make a dataset, and the bucket from which its tables are loaded."""
        made = self._session.post(f"{self._storage}/storage/v1/b", json={"name": RAW})
        made.raise_for_status()
        self.call("POST", "datasets", {"datasetReference": {"datasetId": name},
                                       "location": LOCATION})  # fmt: skip

    def send_load(self, table: str, lines: Iterable[str], how: str = "WRITE_APPEND") -> str:
        """Begin to load lines of CSV, the first of which names the columns; the job's id."""
        name, (dataset, table_id) = f"{uuid.uuid4().hex}.csv", table.split(".")
        upload = f"{self._storage}/upload/storage/v1/b/{RAW}/o?uploadType=media&name={name}"
        self._session.post(upload, "\n".join(lines).encode()).raise_for_status()
        place = {"projectId": self.project, "datasetId": dataset, "tableId": table_id}
        return self.send({"load": {
            "sourceUris": [f"gs://{RAW}/{name}"], "skipLeadingRows": 1, "autodetect": True,
            "writeDisposition": how, "destinationTable": place,
        }})  # fmt: skip

    def load(self, table: str, lines: Iterable[str], how: str = "WRITE_APPEND") -> None:
        """The same, until it is done."""
        ended = self.ended(self.send_load(table, lines, how))
        assert "errorResult" not in ended["status"], ended["status"]

    def send_query(self, sql: str, parameters: Iterable[Any] = ()) -> str:
        """Begin a query; the job's id."""
        given = {"query": sql, "useLegacySql": False, "queryParameters": list(parameters)}
        return self.send({"query": given})

    def send(self, configuration: Any) -> str:
        """Begin a job; its id."""
        reference = {"projectId": self.project, "location": LOCATION}
        body = {"jobReference": reference, "configuration": configuration}
        return self.call("POST", "jobs", body)["jobReference"]["jobId"]

    def ended(self, job_id: str, seconds: float = 120.0) -> dict[str, Any]:
        """The job, when it has ended."""
        deadline = time.monotonic() + seconds
        while (job := self.call("GET", f"jobs/{job_id}"))["status"]["state"] != "DONE":
            assert time.monotonic() < deadline, job["status"]
            time.sleep(0.1)
        return job

    def ran(self, part: str = "vt-snapshot-") -> list[str]:
        """Ids of jobs that have this in them, in order."""
        jobs = self.call("GET", "jobs").get("jobs", [])
        names = (each["jobReference"]["jobId"] for each in jobs)
        return sorted(name for name in names if part in name)
