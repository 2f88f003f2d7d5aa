"""BigQuery, Cloud Storage and the control bucket in memory, with a clock of their own.

What a process may meet: it dies before or after any call, a job takes its time, tables change.
"""

import dataclasses
from typing import Any

from vertex_training.customjob.protocol.ports import ProcessEnvironment, StoredIntent
from vertex_training.errors import PreconditionFailedError
from vertex_training.snapshots.manifest import StoredObject
from vertex_training.snapshots.protocol import SnapshotPorts
from vertex_training.snapshots.request import SnapshotRequest

CLICKS = {"projectId": "acme", "datasetId": "web", "tableId": "clicks"}
ROWS = 891


def request(**changes):
    given = SnapshotRequest(
        project="local-training",
        stack="local",
        name="clicks",
        run=1,
        location="us-central1",
        bucket="data",
        sql="SELECT * FROM `acme.web.clicks` WHERE day = @day AND n > @n AND x = @x AND b = @b",
        parameters={"day": "2026-11-20", "n": 3, "x": 0.5, "b": True},
        as_of=None,
        format="parquet",
        max_bytes_billed=10**9,
    )
    return dataclasses.replace(given, **changes)


class Killed(BaseException):
    """The process ended here."""


class Cloud:
    """What outlives every process."""

    def __init__(self):
        self.now, self.takes = 1_000.0, 3.0
        self.jobs, self.sent, self.tables = {}, [], {}
        self.objects, self.records, self.generation = {}, {}, 100
        self.fails = {}  # stage -> errorResult
        self.changed_at = 500.0
        self.processed, self.billed_more_than_estimated = 2**30, 0

    def tick(self, seconds):
        self.now += seconds
        for job in self.jobs.values():
            if job["status"]["state"] == "RUNNING" and self.now >= job["ends"]:
                self.end(job)

    def end(self, job):
        job["status"] = {"state": "DONE"}
        if error := job["fails"]:
            job["status"]["errorResult"] = error
        elif "query" in job["configuration"]:
            self.tables[job["table"]] = self.now + 86_400
        else:
            self.write_part(job, 2)

    def write_part(self, job, count):
        [uri] = job["configuration"]["extract"]["destinationUris"]
        for number in range(count):
            self.put(uri.split("/", 3)[3].replace("*", f"{number:012d}"), b"rows" * 9)
        job["statistics"]["extract"] = {"destinationUriFileCounts": [str(count)]}

    def put(self, name, content):
        self.generation += 1
        self.objects[name] = (content, self.generation)
        return self.generation

    def stages(self):
        return [job_id.split("-", 3)[3] for job_id, *_ in self.sent]


class Process:
    """The ports of one process. ``dies_at``: the number of the call, and whether before it."""

    def __init__(self, cloud, wanted, dies_at=None, alive=lambda: True):
        self.cloud, self.wanted, self.dies_at, self.calls = cloud, wanted, dies_at, 0
        self.environment = ProcessEnvironment(
            sleep=cloud.tick, monotonic=lambda: cloud.now, engine_is_alive=alive
        )
        records: Any = _Records(self)
        self.ports = SnapshotPorts(self, self, records)

    def call(self, effect):
        self.calls += 1
        if self.dies_at == (self.calls, "before"):
            raise Killed
        answer = effect()
        if self.dies_at == (self.calls, "after"):
            raise Killed
        return answer

    # Warehouse

    def job(self, job_id):
        return self.call(lambda: self.cloud.jobs.get(job_id))

    def insert(self, job_id, configuration):
        return self.call(lambda: self._insert(job_id, configuration))

    def _insert(self, job_id, configuration):
        cloud = self.cloud
        if job_id in cloud.jobs:
            return None
        stage = job_id.split("-")[3]
        job = {
            "jobReference": {"jobId": job_id},
            "configuration": {key: dict(value) for key, value in configuration.items()},
            "status": {"state": "RUNNING"},
            "statistics": {"startTime": str(int(cloud.now * 1000)), "totalBytesProcessed": "7"},
            "ends": cloud.now + cloud.takes,
            "fails": cloud.fails.get(stage),
            "table": f"anon{len(cloud.jobs)}",
        }
        if "query" in configuration:
            table = {"projectId": "local-training", "datasetId": "_a", "tableId": job["table"]}
            job["configuration"]["query"]["destinationTable"] = table
            job["statistics"]["query"] = {
                "referencedTables": [CLICKS],
                "totalBytesBilled": "10485760",
            }
        cloud.jobs[job_id] = job
        cloud.sent.append((job_id, configuration))
        return job

    def dry_run(self, configuration):
        fields = [{"name": "age", "type": "FLOAT"}, {"name": "email", "type": "STRING"}]
        return {
            "statistics": {
                "totalBytesProcessed": str(self.cloud.processed),
                "query": {"referencedTables": [CLICKS], "schema": {"fields": fields}},
            }
        }

    def table(self, reference):
        def effect():
            if reference == CLICKS:
                changed = str(int(self.cloud.changed_at * 1000))
                return {"numRows": "5000", "lastModifiedTime": changed}
            if self.cloud.tables.get(reference["tableId"], 0) < self.cloud.now:
                return None
            fields = [{"name": "age", "type": "FLOAT", "mode": "NULLABLE"}]
            return {"numRows": str(ROWS), "schema": {"fields": fields}}

        return self.call(effect)

    # Files

    def _path(self, name):
        return f"{self.wanted.prefix}/{name}"

    def objects(self, folder):
        def effect():
            found = self.cloud.objects.items()
            return [
                StoredObject(name.removeprefix(self._path("")), len(text), generation, "AAAAAA==")
                for name, (text, generation) in found
                if name.startswith(self._path(folder))
            ]

        return self.call(effect)

    def read(self, name):
        return self.call(lambda: self.cloud.objects.get(self._path(name)))

    def create(self, name, content):
        def effect():
            path = self._path(name)
            return None if path in self.cloud.objects else self.cloud.put(path, content)

        return self.call(effect)


class _Records:
    """The control bucket."""

    def __init__(self, process):
        self._process, self._records = process, process.cloud.records

    def read(self, request_id):
        return self._process.call(lambda: self._records.get(request_id))

    def write(self, record, generation):
        def effect():
            stored = self._records.get(record.request_id)
            if generation != (stored.generation if stored else 0):
                raise PreconditionFailedError
            self._records[record.request_id] = StoredIntent(record, generation + 1, 0.0)
            return self._records[record.request_id]

        return self._process.call(effect)
