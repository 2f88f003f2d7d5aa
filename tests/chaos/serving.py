"""Kills uploads, deployments and split changes during a stream of prediction requests.

Each round makes a version of one more run, deploys it beside the one before, sets a split and takes
away the version before that. The process that does it is killed at random moments, several times in
a row, and once left alone. Two threads look on: a watcher reads the endpoint again and again, and a
stream asks for 20 predictions a second.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from google.cloud import storage

from localgcp import lifecycle
from localgcp.home import Home
from localgcp.inventory.store import SERVICE, Store
from tests.chaos.arena import REGION, ROOT, say_nothing, wait_for
from tests.fixture_project import source_path
from vertex_training.customjob.google import intent_store
from vertex_training.customjob.google import job_service as jobs
from vertex_training.serving.declared import DeclaredDeployment, DeclaredVersion, ModelSource

PROJECT: Final = "local-chaos"
PLACE: Final = f"projects/{PROJECT}/locations/{REGION}"
ENDPOINT: Final = "123456789"
BUCKET: Final = "artifacts"
KILLS_IN_A_ROW: Final = 4
RECOVERIES: Final = 3
REQUESTS_A_SECOND: Final = 20
#: Not of the local project, so its command runs on this machine.
IMAGE: Final = f"us-docker.pkg.dev/acme-images/serving/doubler@sha256:{'0' * 64}"
SERVER: Final = ROOT / "tests" / "unit" / "localcloud" / "serving" / "model_server.py"


@dataclass
class Tally:
    """Results of a campaign."""

    seed: int
    kills: int = 0
    survived: int = 0
    """Processes that were done before their kill."""
    rounds: int = 0
    looks: int = 0
    """Of the watcher."""
    answered: int = 0
    """Requests of the stream."""
    problems: list[str] = field(default_factory=list)
    recoveries: list[float] = field(default_factory=list)


class Worker:
    """A process that forks the processes to kill."""

    def __init__(self, env: dict[str, str], module: str = "serving_process") -> None:
        self._parent = subprocess.Popen(
            [sys.executable, "-m", f"tests.chaos.{module}"],
            cwd=ROOT, env=env, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip

    def start(self, given: dict[str, Any]) -> int:
        """Start a working process and return its id."""
        return self._ask(json.dumps(given))

    def status(self) -> int:
        """Return the exit status of an ended process: 0 if it completed its work."""
        return self._ask("")

    def _ask(self, line: str) -> int:
        assert self._parent.stdin
        assert self._parent.stdout
        print(line, file=self._parent.stdin, flush=True)
        return int(self._parent.stdout.readline())

    def close(self) -> None:
        self._parent.kill()
        self._parent.communicate()


class Serving:
    """A local cloud with one endpoint. Use with ``with``."""

    def __init__(self, folder: Path, tally: Tally) -> None:
        self.folder, self.tally = folder, tally
        self.home = Home(folder / "home", ROOT)
        self.log = folder / "work.log"
        self.stop = threading.Event()
        self.serving = threading.Event()
        """Set once something is deployed, so that requests can be answered."""

    def __enter__(self) -> Serving:
        self.folder.mkdir(parents=True, exist_ok=True)
        info = lifecycle.start(self.home, say_nothing)
        name = f"{PROJECT}/aiplatform.googleapis.com"
        Store(self.home.database).put(SERVICE, name, PROJECT, {}, {})
        env = self.home.environment(info.ports)
        for variable in (jobs.EMULATOR, intent_store.EMULATOR):
            os.environ[variable] = env[variable]
        self.env = {**os.environ, **env, "PYTHONPATH": source_path(ROOT)}
        self.env |= {"CHAOS_LOG": str(self.log), "GRPC_VERBOSITY": "ERROR"}
        for bucket in (BUCKET, "control"):
            storage.Client(project=PROJECT).create_bucket(bucket)
        self.models, self.endpoints, self.predictions = (
            self.client(kind) for kind in ("model", "endpoint", "prediction")
        )
        body = {"display_name": "chaos", "dedicated_endpoint_enabled": True}
        request = {"parent": PLACE, "endpoint": body, "endpoint_id": ENDPOINT}
        self.name = self.endpoints.create_endpoint(request).result(60).name
        self.worker = Worker(self.env)
        self._threads = [threading.Thread(target=each) for each in (self._watch, self._stream)]
        for each in self._threads:
            each.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop.set()
        for each in self._threads:
            each.join()
        self.worker.close()
        lifecycle.stop(self.home)

    def client(self, kind: str) -> Any:
        """Return an official client of a service, on its own channel."""
        from vertex_training_cli.serving import service

        return service.client(PROJECT, REGION, kind)  # pyright: ignore[reportArgumentType]

    # --- those who look on
    def problem(self, text: str) -> None:
        self.tally.problems.append(f"round {self.tally.rounds}: {text}")

    def _watch(self) -> None:
        while not self.stop.wait(0.01):
            found = self.endpoints.get_endpoint(name=self.name)
            self.tally.looks += 1
            ids = [each.id for each in found.deployed_models]
            split = dict(found.traffic_split)
            if split and sum(split.values()) != 100:
                self.problem(f"the split is {split}")
            if len(set(ids)) != len(ids) or not {k for k, v in split.items() if v} <= {*ids}:
                self.problem(f"{split} of {ids}")
            if split:
                self.serving.set()
            elif self.serving.is_set():
                self.problem("the split is gone")

    def _stream(self) -> None:
        while not self.serving.wait(0.1):
            if self.stop.is_set():  # nothing was ever served
                return
        due = time.monotonic()
        while not self.stop.is_set():
            threading.Thread(target=self._ask).start()
            due += 1 / REQUESTS_A_SECOND
            self.stop.wait(max(0.0, due - time.monotonic()))

    def _ask(self) -> None:
        try:
            answer = self.predictions.predict(endpoint=self.name, instances=[2.0], timeout=60)
        except Exception as error:
            if not self.stop.is_set():
                self.problem(f"a request was lost: {error}")
            return
        # The version of run N answers 2N: the number of the version is not that of the run.
        if answer.predictions[0] not in {2.0 * run for run in range(1, self.tally.rounds + 2)}:
            self.problem(f"answered {answer.predictions[0]}")
        self.tally.answered += 1

    # --- what is declared
    def declared(self, round_: int, share: int) -> dict[str, Any]:
        """Return resource properties in a round: the versions of two runs, and their split."""
        runs = [run for run in (round_, round_ + 1) if run > 0]
        versions = {run: _version(run) for run in runs}
        deployments = {
            run: DeclaredDeployment(version, {"machineType": "n1-standard-2"}, 1, 1)
            for run, version in versions.items()
        }
        split = {runs[-1]: share, runs[0]: 100 - share} if len(runs) > 1 else {runs[0]: 100}
        endpoint = {"project": PROJECT, "region": REGION, "id": ENDPOINT, "key": "chaos"}
        return {
            "versions": {f"run {run}": _properties(each) for run, each in versions.items()},
            "traffic": {
                "endpoint": {**endpoint, "stack": "chaos"},
                "deployed": {
                    f"run {run}": {
                        "deployedModelId": each.id, "machine": dict(each.machine), "min": 1,
                        "max": 1,
                    }
                    for run, each in deployments.items()
                },
                "split": {f"run {run}": each for run, each in split.items()},
                "options": {},
            },
        }  # fmt: skip

    def write_artifacts(self, run: int) -> None:
        """Write the run's artifacts: a model that multiplies by its number."""
        blob = storage.Client(project=PROJECT).bucket(BUCKET).blob(f"{run}/model/model.json")
        blob.upload_from_string(json.dumps({"slope": run}))

    def check(self, given: dict[str, Any]) -> None:
        """Check that each request has one version, and that the endpoint matches its
        declaration.
        """
        listed = list(self.models.list_model_versions(name=f"{PLACE}/models/chaos"))
        for name, each in given["versions"].items():
            found = [v for v in listed if v.labels["vt-request-id"] == each["requestId"]]
            if len(found) != 1:
                self.problem(f"{len(found)} versions of {name}")
        traffic, found = given["traffic"], self.endpoints.get_endpoint(name=self.name)
        wanted = {
            each["deployedModelId"]: traffic["split"][name]
            for name, each in traffic["deployed"].items()
        }
        if sorted(each.id for each in found.deployed_models) != sorted(wanted):
            self.problem(f"deployed: {[each.id for each in found.deployed_models]}, not {wanted}")
        split = {id_: share for id_, share in wanted.items() if share}
        if dict(found.traffic_split) != split:
            self.problem(f"the split is {dict(found.traffic_split)}, not {split}")

    def said(self) -> str:
        """Return the end of the processes' output."""
        return self.log.read_text()[-1500:] if self.log.exists() else ""


def _version(run: int) -> DeclaredVersion:
    container = {
        "imageUri": IMAGE, "command": [sys.executable, str(SERVER)],
        "predictRoute": "/predict", "healthRoute": "/health",
    }  # fmt: skip
    source = ModelSource(PROJECT, REGION, "chaos", "chaos", "train", run)
    return DeclaredVersion(source, "chaos", json.dumps(container), "model")


def _properties(version: DeclaredVersion) -> dict[str, Any]:
    source = version.source
    return {
        "model": {
            "project": PROJECT, "region": REGION, "stack": source.stack, "model": source.model,
            "job": source.job, "run": source.run, "id": version.model_id,
        },
        "requestId": version.request_id,
        "container": version.container,
        "artifacts": version.artifacts,
        "files": [],
        "options": {"labels": {}, "controlBucket": "control", "onDelete": "keep"},
        "resolved": {"artifactUri": f"gs://{BUCKET}/{source.run}/model/"},
    }  # fmt: skip


def run(
    folder: Path, kills: int, seed: int, on_round: Callable[[Tally], None] = lambda _: None
) -> Tally:
    """Kill at least a number of processes, at moments uniform over an undisturbed duration."""
    tally, chance = Tally(seed), random.Random(seed)
    with Serving(folder, tally) as serving:
        usual = _round(serving, chance, 0, 0.0)
        while tally.kills < kills and not tally.problems:
            tally.rounds += 1
            usual = (usual + _round(serving, chance, KILLS_IN_A_ROW, usual)) / 2
            on_round(tally)
    return tally


def _round(serving: Serving, chance: random.Random, kills: int, usual: float) -> float:
    """Add one version with kills; return the duration of the undisturbed process."""
    tally = serving.tally
    serving.write_artifacts(tally.rounds + 1)
    given = serving.declared(tally.rounds, chance.choice((0, 1, 10, 50, 99, 100)))
    for attempt in range(kills):
        pid, moment = serving.worker.start(given), chance.uniform(0.0, usual)
        time.sleep(moment)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        if serving.worker.status() == signal.SIGKILL:
            tally.kills += 1
        else:
            tally.survived += 1
            # All of the work took less: without this, one slow round would let most survive.
            usual = usual if attempt else moment
    began = time.monotonic()
    for _ in range(RECOVERIES):
        serving.worker.start(given)
        if serving.worker.status() == 0:
            break
    else:
        serving.problem(f"not brought up: {serving.said()}")
    took = time.monotonic() - began
    if kills:
        tally.recoveries.append(took)
    serving.check(given)
    return max(took, usual)


def race(folder: Path, seed: int) -> Tally:
    """Run two operators at once, with the same stack file, then with two."""
    tally = Tally(seed)
    with Serving(folder, tally) as serving, _second(serving) as other:
        _round(serving, random.Random(seed), 0, 0.0)
        tally.rounds += 1
        serving.write_artifacts(2)
        same = serving.declared(1, 10)
        for worker in (serving.worker, other):
            worker.start(same)
        for worker in (serving.worker, other):
            if worker.status():
                serving.problem(f"an operator failed: {serving.said()}")
        serving.check(same)
        for worker, share in ((serving.worker, 30), (other, 70)):
            worker.start(serving.declared(1, share))
        ends = [worker.status() for worker in (serving.worker, other)]
        last = serving.endpoints.get_endpoint(name=serving.name).traffic_split
        if sorted(last.values()) != [30, 70] or all(ends):
            serving.problem(f"exit codes {ends}, split {dict(last)}: {serving.said()}")
        wait_for(lambda: tally.answered > REQUESTS_A_SECOND, "the stream is answered")
    return tally


@contextmanager
def _second(serving: Serving) -> Iterator[Worker]:
    worker = Worker(serving.env)
    try:
        yield worker
    finally:
        worker.close()
