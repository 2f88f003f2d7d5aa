"""How each build ends, what it has then, and what it leaves."""

from __future__ import annotations

import datetime
import gzip
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from google.api_core.exceptions import NotFound
from google.cloud.devtools import cloudbuild_v1

from localgcp.cloudbuild import runner
from localgcp.cloudbuild.records import Build, BuildTable, Status
from localgcp.cloudbuild.runner import BuildRunner
from tests.unit.localcloud.conftest import wait_until

PROJECT = "local-training"
IMAGE = "us-docker.pkg.dev/local-training/r/titanic"
DOCKER = "gcr.io/cloud-builders/docker"


class Access:
    """What the account of a build may do."""

    def __init__(self) -> None:
        self.may_push = self.may_log = True

    def pushes(self, image: str) -> bool:
        assert image == f"{IMAGE}:v1"
        return self.may_push

    def writes_logs(self) -> bool:
        return self.may_log


def build(id_: str = "a1", **changes: Any) -> Build:
    whole: dict[str, Any] = {
        "id": id_,
        "project_id": PROJECT,
        "status": Status.QUEUED,
        "steps": [{"name": DOCKER, "args": ["buildx", "build", "--tag", f"{IMAGE}:v1", "."]}],
        "images": [f"{IMAGE}:v1"],
        "service_account": "projects/p/serviceAccounts/a@b",
        "timeout": datetime.timedelta(seconds=30),
        "queue_ttl": datetime.timedelta(seconds=30),
        "source_provenance": {"resolved_storage_source": {
            "bucket": "b", "object_": "o", "generation": 5}},
        **changes,
    }  # fmt: skip
    return Build(whole)


class Runner:
    """Builds that a shell's script carries out."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root, self.access = root, Access()
        self.builds, self.made = BuildTable(root / "builds"), list[BuildRunner]()
        self.downloads: list[tuple[str, str, int]] = []
        self.source: bytes | Exception = gzip.compress(b"archive")
        monkeypatch.setattr(runner, "storage_client", self.client)
        monkeypatch.setattr(runner, "server_environment", lambda: {"PATH": "/usr/bin:/bin"})

    def client(self, url: str) -> Any:
        assert url == "http://s"

        def download(path: str, if_generation_match: int) -> None:
            self.downloads.append(("b", "o", if_generation_match))
            if isinstance(self.source, Exception):
                raise self.source
            Path(path).write_bytes(self.source)

        blob = SimpleNamespace(download_to_filename=download)
        return SimpleNamespace(bucket=lambda _b: SimpleNamespace(blob=lambda _o: blob))

    def make(self, script: str, slots: int = 2) -> BuildRunner:
        made = BuildRunner(
            self.builds, self.root / "run", "http://s", lambda: {"OWN": "1"}, slots=slots,
            program=("sh", "-c", script, "builder"),
        )  # fmt: skip
        self.made.append(made)
        return made

    def run(self, script: str, **changes: Any) -> Build:
        """A build when it is over, and its thread."""
        self.builds.add(build(**changes))
        made = self.make(script)
        made.start("a1", cast(Any, self.access))
        wait_until(lambda: self.status() not in ("QUEUED", "WORKING"))
        for thread in made._threads:
            thread.join(20)
        return self.get()

    def get(self, id_: str = "a1") -> Build:
        found = self.builds.get(id_)
        assert found is not None
        return found

    def status(self, id_: str = "a1") -> str:
        return Status(self.get(id_).status).name

    def log(self) -> list[str]:
        return [
            line.partition("] ")[2] if line.startswith("[local") else line
            for line in self.builds.log("a1").read_text().splitlines()
        ]


@pytest.fixture
def ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Runner]:
    made = Runner(tmp_path, monkeypatch)
    yield made
    for each in made.made:
        each.stop()


WELL = 'echo "$OWN $PATH"; gzip -t "$1" 2>/dev/null; printf "sha256:x\\n" > "$2"'


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (b"no archive", "Not a gzipped file (b'no')"),
        (
            gzip.compress(b"archive", mtime=0)[:-9],
            "Compressed file ended before the end-of-stream marker",
        ),
        (gzip.compress(b"", mtime=0)[:10] + b"\xff" * 20, "Error -3 while decompressing data"),
        (NotFound("gone"), "404 gone"),
    ],
)
def test_a_source_that_cannot_be_fetched_fails_the_build(
    ran: Runner, sent: bytes | Exception, said: str
) -> None:
    ran.source = sent
    ended = ran.run(WELL)
    failure = cloudbuild_v1.Build.FailureInfo
    assert (Status(ended.status).name, ended.status_detail, ended.failure_info) == (
        "FAILURE", "failed to fetch the source",
        failure(type_=failure.FailureType.FETCH_SOURCE_FAILED, detail="failed to fetch the source"),
    )  # fmt: skip
    [line] = ran.log()
    assert line.startswith(f"the source cannot be fetched: {said}")


def test_a_build_that_this_machine_cannot_run_fails(ran: Runner) -> None:
    ended = ran.run("true", steps=[{"name": "ubuntu"}])
    assert ran.log() == ["the local cloud builds images by docker buildx alone, not: step ubuntu"]
    detail = "the local cloud cannot run this build"
    assert (ran.status(), ended.status_detail) == ("FAILURE", detail)
    assert ended.failure_info.type_.name == "USER_BUILD_STEP"


def test_the_installed_builder_is_a_module(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [SimpleNamespace(module="some.builder"), SimpleNamespace(module="other")]
    asked: list[str] = []

    def entry_points(group: str) -> Any:
        asked.append(group)
        return found

    monkeypatch.setattr(runner.importlib.metadata, "entry_points", entry_points)
    assert runner.installed_builder() == (sys.executable, "-m", "some.builder")
    assert asked == ["localgcp.image_builder"]
    found.clear()
    assert runner.installed_builder() == ()


def test_a_program_that_cannot_be_started_is_an_internal_error(ran: Runner) -> None:
    ran.builds.add(build())
    made = BuildRunner(ran.builds, ran.root / "run", "http://s", dict, program=("/none/x",))
    ran.made.append(made)
    made.start("a1", cast(Any, ran.access))
    wait_until(lambda: ran.status() == "INTERNAL_ERROR")
    assert ran.get().status_detail == "/none/x: No such file or directory"


def test_a_mistake_of_the_local_cloud_is_an_internal_error(
    ran: Runner, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(runner.steps, "engine_request", lambda *_: 1 / 0)
    ended = ran.run("true")
    assert (ran.status(), ended.status_detail) == (
        "INTERNAL_ERROR", "internal error: ZeroDivisionError",
    )  # fmt: skip
    assert "ZeroDivisionError" in capsys.readouterr().err
    assert not ran.builds.work("a1").exists()


def test_a_build_that_was_cancelled_before_its_turn_leaves_its_slot(ran: Runner) -> None:
    ran.builds.add(build("b2", status=Status.CANCELLED))
    ran.builds.add(build())
    made = ran.make("echo x > $2", slots=1)
    for id_ in ("b2", "a1"):
        made.start(id_, cast(Any, ran.access))
        made._threads[-1].join(20)
    assert (ran.status("b2"), ran.status()) == ("CANCELLED", "SUCCESS")
    assert len(ran.downloads) == 1


def test_the_end_of_a_server_ends_its_builds_and_so_does_the_next_start(ran: Runner) -> None:
    ran.builds.add(build())
    made = ran.make("exec sleep 600")
    made.start("a1", cast(Any, ran.access))
    wait_until(lambda: ran.status() == "WORKING")
    made.stop()
    stopped = ("INTERNAL_ERROR", "the local cloud was stopped")
    assert (ran.status(), ran.get().status_detail) == stopped
    for id_, status in (("b2", Status.QUEUED), ("c3", Status.WORKING), ("d4", Status.SUCCESS)):
        ran.builds.add(build(id_, status=status))
    ran.make("true").recover()
    found = [(ran.status(id_), ran.get(id_).status_detail) for id_ in ("b2", "c3", "d4")]
    assert found == [stopped, stopped, ("SUCCESS", "")]
