"""Paths below ``/gcs`` that code makes as it runs lead to the buckets, and nowhere else."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.cloud import aiplatform_v1 as vertex
from google.cloud.aiplatform_v1.services.job_service.transports.grpc import JobServiceGrpcTransport

from localgcp import lifecycle, processes
from localgcp.home import Home
from localgcp.inventory.store import BUCKET, SERVICE, Store
from localgcp.runner import buckets
from localgcp.runner.gang import host_launcher, hosts
from localgcp.runner.gang.hosts import BucketView, Host
from localgcp.runner.gcsfuse import Mount, storage_client
from localgcp.vertex.admission import Access
from tests.security.other_user import UID, needs_root
from tests.unit.localcloud.conftest import (
    PARENT,
    PROJECT,
    TRAINER,
    Cloud,
    command_job,
    wait_until,
)

JobState = vertex.JobState
pytestmark = pytest.mark.skipif(
    not hosts.has_mounts(), reason="this system gives a process no mounts of its own"
)
#: No word of a job below names the mount: ``G`` is it.
MOUNT = "G=/g; G=${G}cs; "


def shell(script: str, **spec: str) -> dict[str, Any]:
    return command_job("sh", "-ec", MOUNT + script, **spec)


def test_a_path_made_at_run_time_leads_to_the_bucket(cloud_with_storage: Cloud) -> None:
    cloud = cloud_with_storage
    out = cloud.bucket("out")
    out.blob("in.txt").upload_from_string("from the bucket")
    code = (
        "import os, pathlib; box = os.path.join('/', 'g' + 'cs', 'out')\n"
        "print(open(os.path.join(box, 'in.txt')).read())\n"
        "path = pathlib.Path(box, 'run', 'model.pt'); path.parent.mkdir()\n"
        "path.write_text('a model')\n"
    )
    job = cloud.run(command_job(sys.executable, "-c", code))
    assert job.state == JobState.JOB_STATE_SUCCEEDED, cloud.log(job)
    assert "from the bucket" in cloud.log(job)
    assert out.blob("run/model.pt").download_as_bytes() == b"a model"
    assert not Path("/gcs/out").exists()
    left = [path.name for path in (cloud.home.jobs / job.name.rpartition("/")[2]).iterdir()]
    assert "root" not in left


def test_all_replicas_have_the_same_folder(cloud_with_storage: Cloud) -> None:
    cloud = cloud_with_storage
    out = cloud.bucket("out")
    job = shell("while ! test -e $G/out/two; do sleep 0.05; done; mv $G/out/two $G/out/one")
    second = shell("echo 2 >$G/out/two; sleep 600")
    job["job_spec"]["worker_pool_specs"] += second["job_spec"]["worker_pool_specs"]
    done = cloud.run(job)
    assert done.state == JobState.JOB_STATE_SUCCEEDED, cloud.log(done)
    assert [blob.name for blob in out.list_blobs()] == ["one"]


def test_what_others_upload_replace_and_delete_while_a_job_runs_is_seen(
    cloud_with_storage: Cloud,
) -> None:
    cloud = cloud_with_storage
    out = cloud.bucket("out")
    for name in ("old", "gone"):
        out.blob(name).upload_from_string("1")
    script = (
        "echo begun >$G/out/begun; until grep -q 2 $G/out/old; do sleep 0.1; done; "
        "while test -e $G/out/gone; do sleep 0.1; done; cat $G/out/new/deep"
    )
    name = cloud.submit(shell(script)).name
    wait_until(lambda: out.get_blob("begun"))
    out.blob("new/deep").upload_from_string("of another")
    out.blob("gone").delete()
    out.blob("old").upload_from_string("2")
    get = cloud.client.get_custom_job
    wait_until(lambda: get(name=name).state == JobState.JOB_STATE_SUCCEEDED)
    assert "of another" in cloud.log(get(name=name))
    assert {blob.name for blob in out.list_blobs()} == {"begun", "new/deep", "old"}


def test_what_the_job_and_another_write_is_what_the_last_one_wrote(
    cloud_with_storage: Cloud,
) -> None:
    cloud = cloud_with_storage
    out = cloud.bucket("out")
    script = (
        "echo 1 >$G/out/file; while ! test -e $G/out/go; do sleep 0.1; done; echo job >$G/out/file"
    )
    name = cloud.submit(shell(script)).name
    wait_until(lambda: out.get_blob("file"))
    out.blob("file").upload_from_string("another")
    out.blob("go").upload_from_string("")
    get = cloud.client.get_custom_job
    wait_until(lambda: get(name=name).state == JobState.JOB_STATE_SUCCEEDED)
    assert out.blob("file").download_as_bytes() == b"job\n"


def test_a_bucket_that_the_account_may_only_read_is_read_only(cloud_with_storage: Cloud) -> None:
    cloud = cloud_with_storage
    data = cloud.bucket("data")
    data.blob("a/b.txt").upload_from_string("read me")
    cloud.grant("b/data", "roles/storage.objectViewer")
    for path in ("$G/data", "/gcs/data"):  # shown as it is, and copied because it is named
        job = cloud.run(shell(f"cat {path}/a/b.txt; echo no >{path}/no", service_account=TRAINER))
        assert job.state == JobState.JOB_STATE_FAILED
        assert "read me" in cloud.log(job)
        assert "Read-only file system" in cloud.log(job)
    assert [blob.name for blob in data.list_blobs()] == ["a/b.txt"]


@pytest.mark.parametrize("bucket", ["theirs", "none-by-this-name"])
def test_output_for_a_bucket_that_the_account_may_not_use_fails_the_job(
    cloud_with_storage: Cloud, bucket: str
) -> None:
    cloud = cloud_with_storage
    theirs = cloud.bucket("theirs")
    theirs.blob("secret").upload_from_string("of another team")
    script = f"cat $G/theirs/secret || mkdir -p $G/{bucket}; echo x >$G/{bucket}/model"
    job = cloud.run(shell(script, service_account=TRAINER))
    assert job.state == JobState.JOB_STATE_FAILED
    assert f"/gcs/{bucket}/model, which reached no bucket" in job.error.message
    assert "of another team" not in cloud.log(job)
    assert [blob.name for blob in theirs.list_blobs()] == ["secret"]


def test_a_large_bucket_that_the_job_does_not_name_is_not_copied(
    cloud_with_storage: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(buckets, "_MOST_BYTES", 10)
    cloud = cloud_with_storage
    large = cloud.bucket("large")
    large.blob("a").upload_from_string("eleven long")
    job = cloud.run(shell("cat $G/large/a; echo no >$G/large/b"))
    assert job.state == JobState.JOB_STATE_FAILED
    assert "eleven long" in cloud.log(job)
    assert "/gcs/large is read-only here" in cloud.log(job)
    named = cloud.run(shell("echo yes >$G/large/b; : /gcs/large"))
    assert named.state == JobState.JOB_STATE_SUCCEEDED, cloud.log(named)
    assert large.blob("b").download_as_bytes() == b"yes\n"


def test_the_machines_root_stays_as_it_is_and_so_do_signals(cloud: Cloud) -> None:
    name = "/vt-test-of-buckets"
    job = cloud.run(shell(f"echo x >{name}; ls {name}; grep SigIgn /proc/self/status; ls -d $PWD"))
    assert job.state == JobState.JOB_STATE_SUCCEEDED, cloud.log(job)
    assert not Path(name).exists()
    lines = cloud.log(job).splitlines()
    ignored = next(line for line in lines if line.startswith("SigIgn"))
    # Those that Python ignores; others come from whoever started the tests.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        assert not int(ignored.split()[1], 16) >> (number - 1) & 1
    assert str(cloud.home.jobs) in lines[-2]


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("no-such-program", "No such file or directory"),
        ("./no-such-file", "No such file or directory"),
        ("/gcs/out/run.sh", "Permission denied"),
        ("/gcs/out/none", "No such file or directory"),
        ("/etc", "Permission denied"),
    ],
)
def test_a_program_that_cannot_be_started_is_told(
    cloud_with_storage: Cloud, program: str, reason: str
) -> None:
    cloud = cloud_with_storage
    cloud.bucket("out").blob("run.sh").upload_from_string("#!/bin/sh\n")
    job = cloud.run(command_job(program))
    assert job.state == JobState.JOB_STATE_FAILED
    assert f"could not be started: {program}: {reason}" in job.error.message


def test_a_job_that_begins_again_finds_nothing_of_a_killed_server(
    cloud_with_storage: Cloud, tmp_path: Path
) -> None:
    """A file that was not uploaded before the kill is not in the bucket: the job has it to make."""
    cloud = cloud_with_storage
    cloud.bucket("out").blob("new").upload_from_string("new")
    folder = tmp_path / "gcs" / "out"
    folder.mkdir(parents=True)
    (folder / "never-uploaded").touch()
    access = Access(cloud.store, PROJECT, None)
    assert cloud.storage is not None
    mount = Mount(folder, cloud.home.storage / "out", access, cloud.storage.url, print)
    mount.fill()
    assert [path.name for path in folder.iterdir()] == ["new"]


def test_nothing_stays_mounted_after_a_kill_of_the_server(home: Home) -> None:
    store = Store(home.database)
    store.put(SERVICE, f"{PROJECT}/aiplatform.googleapis.com", PROJECT, {}, {})
    store.put(BUCKET, "out", PROJECT, {}, {"name": "out", "project": PROJECT})
    try:
        info = lifecycle.start(home, print)
        out = storage_client(f"http://127.0.0.1:{info.storage_port}").create_bucket("out")
        channel = grpc.insecure_channel(f"127.0.0.1:{info.vertex_port}")
        client = vertex.JobServiceClient(transport=JobServiceGrpcTransport(channel=channel))
        script = "touch /of-the-job; echo $$ >$G/out/pid; exec sleep 600"
        job = client.create_custom_job(parent=PARENT, custom_job=shell(script))
        wait_until(lambda: out.get_blob("pid"))
        pid = int(out.blob("pid").download_as_text())
        assert processes.start_time(pid)
        os.kill(info.pid, signal.SIGKILL)
        wait_until(lambda: lifecycle.running(home) is None)
        lifecycle.start(home, print)
        wait_until(lambda: processes.start_time(pid) is None)
        found = client.get_custom_job(name=job.name)
        assert found.state == JobState.JOB_STATE_FAILED
        assert out.get_blob("pid")
        channel.close()
    finally:
        lifecycle.stop(home)
    assert mounts_below(home.root, Path("/gcs"), Path("/etc/hosts")) == []
    assert not Path("/of-the-job").exists()
    shutil.rmtree(home.root)


def mounts_below(*folders: Path) -> list[str]:
    """Only these: other tests mount and unmount at the same time."""
    mounted = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    return [path for path in mounted if any(Path(path).is_relative_to(f) for f in folders)]


@needs_root
def test_another_user_has_it_without_a_right_of_root(tmp_path: Path) -> None:
    """By a user namespace; what others may not read stays closed."""
    python = shutil.which("python3", path="/usr/bin:/usr/local/bin")
    base = Path(tempfile.mkdtemp(dir="/tmp"))  # a folder that the other user reaches
    try:
        for name in ("root", "work", "gcs/out", "gcs/data", "live", "gcs/live"):
            (base / name).mkdir(parents=True)
        (base / "live/object").write_text("live")
        view = BucketView(base / "gcs", ["data"], {"live": base / "live"})
        closed = base / "closed"
        closed.mkdir(0o700)
        for path in (base, *base.rglob("*")):
            if path != closed:
                os.chown(path, UID, UID)
        script = (
            "echo w >/gcs/out/file; cat /gcs/live/object; id -u; touch /mine; "
            f"touch /gcs/data/no || touch /gcs/live/no || ls {closed} || mkdir /usr/no || echo end"
        )
        # It may not read where this test lies, so the script comes by standard input.
        line = hosts.command_on(
            Host("127.0.0.1", 1), base / "hosts", ["sh", "-ec", script], os.environ,
            work=base / "work", buckets=view,
        )  # fmt: skip
        at = line.index(host_launcher.__file__)
        done = subprocess.run(
            [str(python), "-I", "-S", "-", *line[at + 1 :]],
            input=Path(host_launcher.__file__).read_text(),
            cwd=base / "work", user=UID, group=UID, extra_groups=[],
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        if done.returncode == host_launcher.REFUSED:
            pytest.skip(f"this system gives other users no namespaces: {done.stderr}")
        assert done.stdout == f"live{UID}\nend\n", done.stderr
        assert (base / "gcs/out/file").stat().st_uid == UID
        assert not Path("/mine").exists()
    finally:
        shutil.rmtree(base)


#: Of the mount that has nothing to mount, or of the system that gives no namespaces.
REFUSALS = {f"[Errno {each}] {os.strerror(each)}\n" for each in (errno.ENOENT, errno.EPERM)}


def test_a_system_that_refuses_namespaces_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A launcher that may not mount ends with its own code, before the program."""
    none = str(tmp_path / "none")
    for view in (
        {"gcs": {"root": none, "folder": "/", "read_only": [], "objects": {}}},
        {"host": {"name": socket.gethostname(), "hosts": none}},
    ):
        line = [sys.executable, host_launcher.__file__, json.dumps(view), "echo", "ran"]
        done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=60)
        assert (done.returncode, done.stdout) == (host_launcher.REFUSED, "")
        assert done.stderr in REFUSALS
    monkeypatch.setattr(hosts, "_LAUNCH", ("false",))
    assert not hosts.has_mounts.__wrapped__()
