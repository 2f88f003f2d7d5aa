"""Image jobs run in containers: their file system, entrypoint, user, variables, buckets, ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.cloud import aiplatform_v1 as vertex
from google.cloud.aiplatform_v1.services.job_service.transports.grpc import JobServiceGrpcTransport

from localgcp import lifecycle
from localgcp.containers.front import REPOSITORY
from localgcp.containers.registry import BASE
from localgcp.home import Home
from localgcp.inventory.store import BUCKET, SERVICE, Store
from localgcp.runner.gcsfuse import storage_client

pytestmark = pytest.mark.timeout(300)

PROJECT = "local-training"
PARENT = f"projects/{PROJECT}/locations/us-central1"
IMAGE = f"us-central1-docker.pkg.dev/{PROJECT}/training/probe"
MARK = "47110815"
DOCKERFILE = f"""\
FROM {BASE.rpartition("/")[2]}
RUN useradd --uid 10001 --no-create-home app
COPY probe.py /app/probe.py
USER app
WORKDIR /app
ENV FROM_IMAGE=yes
ENTRYPOINT ["python", "probe.py"]
CMD ["show"]
"""
PROBE = f"""\
import json, os, signal, subprocess, sys, time, urllib.request
what = sys.argv[1]
if what == "show":
    url = os.environ["STORAGE_EMULATOR_HOST"] + "/storage/v1/b/data-of-tests/o"
    print(json.dumps({{
        "uid": os.getuid(), "cwd": os.getcwd(), "env": dict(os.environ), "bin": os.listdir("/app"),
        "read": open("/gcs/data-of-tests/in.txt").read(),
        "objects": json.load(urllib.request.urlopen(url)).get("items", []),
    }}))
    open("/gcs/data-of-tests/out.txt", "w").write("from the container")
    sys.exit(7)
if what == "trial":
    with open(os.environ["CLOUD_ML_HP_METRIC_FILE"], "w") as file:
        print(json.dumps({{"score": sys.argv[-1], "global_step": 1}}), file=file)
    sys.exit(0)
if what == "processes":
    for process in filter(str.isdigit, os.listdir("/proc")):
        command = open(f"/proc/{{process}}/cmdline").read().replace("\\0", " ").strip()
        try:
            known = "canary of the host" in open(f"/proc/{{process}}/environ").read()
            print("process:", command, known)
        except PermissionError:
            print("process:", command, "not readable")
    sys.exit(0)
if what == "links":
    os.symlink(sys.argv[2], "/gcs/data-of-tests/leak.txt")
    os.symlink(os.path.dirname(sys.argv[2]), "/gcs/data-of-tests/d")
    print("visible:", os.path.exists(sys.argv[2]), flush=True)
    while not os.path.exists("/gcs/data-of-tests/go.txt"):
        time.sleep(0.1)
    sys.exit(0)
def end(*_):
    open("/gcs/data-of-tests/ended.txt", "w").write("in peace")
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
subprocess.Popen(["setsid", "sleep", "{MARK}"])
print("sleeping", flush=True)
time.sleep(600)
"""


@dataclass
class Cloud:
    """A local cloud with an image in its registry."""

    home: Home
    image: str
    client: vertex.JobServiceClient
    storage: Any

    def submit(self, *args: str) -> str:
        container = {"image_uri": self.image, "args": list(args)}
        container["env"] = [{"name": "MINE", "value": "/gcs/data-of-tests"}]
        pool = {
            "machine_spec": {"machine_type": "n1-standard-4"},
            "replica_count": 1,
            "container_spec": container,
        }
        job = {"display_name": "probe", "job_spec": {"worker_pool_specs": [pool]}}
        return self.client.create_custom_job(parent=PARENT, custom_job=job).name

    def state(self, name: str) -> str:
        return self.client.get_custom_job(name=name).state.name.removeprefix("JOB_STATE_")

    def wait(self, name: str, *states: str) -> str:
        deadline = time.monotonic() + 120
        while (state := self.state(name)) not in states:
            assert time.monotonic() < deadline, f"{state}: {self.log(name)}"
            time.sleep(0.1)
        return state

    def log(self, name: str) -> str:
        path = self.home.jobs / name.rpartition("/")[2] / "logs" / "workerpool0-0.log"
        return path.read_text() if path.exists() else ""

    def wait_for_line(self, name: str, line: str) -> None:
        deadline = time.monotonic() + 120
        while line not in self.log(name).splitlines():
            assert time.monotonic() < deadline, self.log(name)
            time.sleep(0.1)


def connect(home: Home, image: str) -> Cloud:
    info = lifecycle.start(home, lambda _: None)
    channel = grpc.insecure_channel(f"127.0.0.1:{info.vertex_port}")
    client = vertex.JobServiceClient(transport=JobServiceGrpcTransport(channel=channel))
    return Cloud(home, image, client, storage_client(f"http://127.0.0.1:{info.storage_port}"))


def build(
    home: Home, folder: Path, buildah: str, dockerfile: str = DOCKERFILE, program: str = PROBE
) -> str:
    """Build an image of a program, ``probe.py``, and push it; its name by digest."""
    info = lifecycle.running(home)
    assert info is not None
    (folder / "Dockerfile").write_text(dockerfile)
    (folder / "probe.py").write_text(program)
    env = {**os.environ, **home.environment(info.ports)}
    local = f"127.0.0.1:{info.registry_port}/{PROJECT}/training/probe:v1"
    places = [buildah, "--root", str(folder / "storage"), "--runroot", str(folder / "run")]
    places += ["--storage-driver", "vfs"]
    options = ["--isolation", "chroot", "--network", "host", "--tag", local]
    digest = folder / "digest"
    for command in (
        [*places, "build", *options, str(folder)],
        [*places, "push", "--tls-verify=false", "--digestfile", str(digest), local],
    ):
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        if done.returncode and "operation not permitted" in done.stderr.lower():
            pytest.skip(f"this machine allows no chroot isolation: {done.stderr.strip()[-300:]}")
        assert done.returncode == 0, done.stderr
    return f"{IMAGE}@{digest.read_text().strip()}"


@pytest.fixture(scope="module")
def cloud(
    tmp_path_factory: pytest.TempPathFactory, registry_program: str, buildah: str, base_image: str
) -> Iterator[Cloud]:
    home = Home(tmp_path_factory.mktemp("jobs") / "home", Path(__file__).resolve().parents[2])
    home.create()
    store = Store(home.database)
    store.put(SERVICE, f"{PROJECT}/aiplatform.googleapis.com", PROJECT, {}, {})
    store.put(REPOSITORY, "training", PROJECT, {"repositoryId": "training"}, {})
    store.put(BUCKET, "data-of-tests", PROJECT, {}, {"name": "data-of-tests", "project": PROJECT})
    lifecycle.start(home, lambda _: None)
    try:
        image = build(home, tmp_path_factory.mktemp("context"), buildah)
        made = connect(home, image)
        bucket = made.storage.create_bucket("data-of-tests")
        bucket.blob("in.txt").upload_from_string("hello")
        yield made
    finally:
        lifecycle.stop(home)
        assert lifecycle.remove(home)
    assert not home.root.exists()


def left_behind(home: Home) -> list[str]:
    """Processes and mounts of containers of this home."""
    mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    found = [line for line in mounts if str(home.root) in line]
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = process.read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        found += [" ".join(words)] if MARK in words else []
    return found


def status_of_user(uid: int, url: str) -> int:
    """What storage answers a process of this user that is none of the container's."""
    code = (
        "import os, sys, http.client, encodings.idna\n"
        "os.setgid(10001); os.setuid(int(sys.argv[1]));"
        "c = http.client.HTTPConnection(sys.argv[2].rpartition('/')[2]);"
        "c.request('GET', '/storage/v1/b?project=local'); print(c.getresponse().status)"
    )
    command = [sys.executable, "-I", "-c", code, str(uid), url]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return int(done.stdout or 0)


def containers(home: Home) -> list[str]:
    """Containers that the engine of this home still has."""
    files = (home.containers / "storage").glob("*-containers/containers.json")
    return [str(each["names"]) for file in files for each in json.loads(file.read_text())]


def test_a_container_has_its_files_entrypoint_user_variables_and_buckets(cloud: Cloud):
    name = cloud.submit()
    assert cloud.wait(name, "FAILED", "SUCCEEDED") == "FAILED"
    error = cloud.client.get_custom_job(name=name).error.message
    assert "non-zero status of 7" in error
    shown = json.loads(next(line for line in cloud.log(name).splitlines() if line[:1] == "{"))
    assert (shown["uid"], shown["cwd"], shown["bin"]) == (10001, "/app", ["probe.py"])
    assert shown["read"] == "hello"
    assert [each["name"] for each in shown["objects"]] == ["in.txt"]
    assert shown["env"]["FROM_IMAGE"] == "yes"
    assert shown["env"]["MINE"] == "/gcs/data-of-tests"
    host = {"VT_LOCAL_HOME", "SSL_CERT_FILE", "TMPDIR", "XDG_RUNTIME_DIR", "VIRTUAL_ENV"}
    assert not host & set(shown["env"])
    out = cloud.storage.bucket("data-of-tests").blob("out.txt").download_as_bytes()
    assert out == b"from the container"
    assert containers(cloud.home) == []
    assert left_behind(cloud.home) == []


def test_a_cancelled_container_may_finish_and_leaves_nothing(cloud: Cloud):
    name = cloud.submit("sleep")
    cloud.wait_for_line(name, "sleeping")
    assert any(MARK in each for each in left_behind(cloud.home))
    assert status_of_user(10001, cloud.storage._connection.API_BASE_URL) == 403
    cloud.client.cancel_custom_job(name=name)
    assert cloud.wait(name, "CANCELLED", "FAILED", "SUCCEEDED") == "CANCELLED"
    ended = cloud.storage.bucket("data-of-tests").blob("ended.txt").download_as_bytes()
    assert ended == b"in peace"
    assert left_behind(cloud.home) == []
    assert containers(cloud.home) == []


def test_a_trial_in_a_container_reports_as_another_user(cloud: Cloud):
    container = {"image_uri": cloud.image, "args": ["trial"]}
    pool = {"machine_spec": {"machine_type": "n1-standard-4"}, "replica_count": 1}
    job = vertex.HyperparameterTuningJob(
        display_name="probe",
        max_trial_count=2,
        parallel_trial_count=2,
        study_spec={
            "algorithm": "GRID_SEARCH",
            "metrics": [{"metric_id": "score", "goal": "MAXIMIZE"}],
            "parameters": [{"parameter_id": "x", "discrete_value_spec": {"values": [0.5, 2]}}],
        },
        trial_job_spec={"worker_pool_specs": [{**pool, "container_spec": container}]},
    )
    request = {"parent": PARENT, "hyperparameter_tuning_job": job}
    name = cloud.client.create_hyperparameter_tuning_job(request=request).name
    deadline = time.monotonic() + 120
    while not (done := cloud.client.get_hyperparameter_tuning_job(name=name)).end_time:
        assert time.monotonic() < deadline, done
        time.sleep(0.1)
    assert done.state.name == "JOB_STATE_SUCCEEDED", done.error.message
    measured = [trial.final_measurement.metrics[0].value for trial in done.trials]
    assert measured == [0.5, 2]
    assert containers(cloud.home) == []


def test_a_link_that_a_container_makes_leads_the_runner_nowhere(cloud: Cloud, tmp_path: Path):
    (tmp_path / "secret").write_text("canary of the host")
    name = cloud.submit("links", str(tmp_path / "secret"))
    cloud.wait_for_line(name, "visible: False")
    bucket = cloud.storage.bucket("data-of-tests")
    for path in ("d/authorized_keys", "go.txt"):  # brought to the job in this order
        bucket.blob(path).upload_from_string("of the attacker")
    assert cloud.wait(name, "FAILED", "SUCCEEDED") == "SUCCEEDED"
    assert not bucket.blob("leak.txt").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["secret"]
    assert "leak.txt is a symbolic link and was not uploaded" in cloud.log(name)
    for path in ("d/authorized_keys", "go.txt"):
        bucket.blob(path).delete()


def test_a_container_sees_no_process_of_this_machine(cloud: Cloud):
    with subprocess.Popen(["sleep", "600"], env={"CANARY": "canary of the host"}) as shell:
        name = cloud.submit("processes")
        assert cloud.wait(name, "FAILED", "SUCCEEDED") == "SUCCEEDED", cloud.log(name)
        shell.kill()
    seen = [line for line in cloud.log(name).splitlines() if line.startswith("process:")]
    assert any("probe.py processes" in line for line in seen)
    assert not [line for line in seen if "sleep" in line or line.endswith("True")], seen


def test_an_image_that_is_not_there_fails_the_job_with_the_image_named(cloud: Cloud):
    there, cloud.image = cloud.image, f"{IMAGE}@sha256:{'0' * 64}"
    name = cloud.submit()
    cloud.image = there
    cloud.wait(name, "FAILED")
    assert "cannot pull the image" in cloud.client.get_custom_job(name=name).error.message


def test_a_killed_server_leaves_no_process_and_no_mount_and_the_next_one_no_container(
    cloud: Cloud,
):
    name = cloud.submit("sleep")
    cloud.wait_for_line(name, "sleeping")
    info = lifecycle.running(cloud.home)
    assert info is not None
    os.kill(info.pid, signal.SIGKILL)
    again = connect(cloud.home, cloud.image)
    cloud.client, cloud.storage = again.client, again.storage
    cloud.wait(name, "FAILED")
    assert left_behind(cloud.home) == []
    assert containers(cloud.home) == []
