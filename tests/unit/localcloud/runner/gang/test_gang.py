"""Jobs of several replicas that really run: their hosts, their ends, their faults."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from google.cloud import aiplatform_v1 as vertex

from localgcp import processes
from localgcp.faults.model import Fault
from localgcp.faults.table import FaultTable
from localgcp.runner.gang import hosts
from localgcp.vertex.log_times import LogTimes
from tests.unit.localcloud.conftest import Cloud, command_job, wait_until

JobState = vertex.JobState
ENDED = (
    JobState.JOB_STATE_SUCCEEDED,
    JobState.JOB_STATE_FAILED,
    JobState.JOB_STATE_CANCELLED,
)
#: Waits until a file is in the folder that all replicas of a test share.
WAIT = 'while ! test -e "$SHARED/{0}"; do sleep 0.05; done'


@pytest.fixture
def shared(cloud: Cloud) -> str:
    folder = cloud.home.root / "shared"
    folder.mkdir()
    return str(folder)


def pools(shared: str, *scripts: str | tuple[int, str], **scheduling: Any) -> dict[str, Any]:
    """A job whose pools run these scripts; a number in front is the replica count."""
    job = command_job("true", **({"scheduling": scheduling} if scheduling else {}))
    made: list[dict[str, Any]] = []
    for given in scripts:
        count, script = given if isinstance(given, tuple) else (1, given)
        container = {
            "image_uri": "python:3.11",
            "command": ["sh", "-c", script],
            "env": [{"name": "SHARED", "value": shared}],
        }
        machine = {"machine_type": "n1-standard-4"}
        made.append({"machine_spec": machine, "replica_count": count, "container_spec": container})
    job["job_spec"]["worker_pool_specs"] = made
    return job


def log(cloud: Cloud, job: vertex.CustomJob, replica: str = "workerpool0-0") -> str:
    folder = cloud.home.jobs / job.name.rpartition("/")[2] / "logs"
    return (folder / f"{replica}.log").read_text()


def add(cloud: Cloud, kind: str, **given: Any) -> None:
    FaultTable(cloud.home.faults).add(Fault.parse(service="jobs", kind=kind, **given))


def finish(cloud: Cloud, name: str) -> vertex.CustomJob:
    wait_until(lambda: cloud.client.get_custom_job(name=name).state in ENDED)
    return cloud.client.get_custom_job(name=name)


def file_in(shared: str, name: str) -> Callable[[], bool]:
    return (Path(shared) / name).exists


def touch(shared: str, name: str) -> None:
    (Path(shared) / name).touch()


def test_every_replica_is_a_process_with_its_own_log_disk_and_cluster_entry(
    cloud: Cloud, shared: str
) -> None:
    show = "pwd; echo $CLUSTER_SPEC"
    chief = f"{show}; {WAIT.format('one')}; {WAIT.format('two')}"
    worker = f'{show}; touch "$SHARED/one"; {WAIT.format("two")}; sleep 600'
    server = f'{show}; touch "$SHARED/two"; sleep 600'
    job = cloud.run(pools(shared, chief, worker, server))
    assert job.state == JobState.JOB_STATE_SUCCEEDED, job.error.message
    folders: set[str] = set()
    for number in range(3):
        lines = log(cloud, job, f"workerpool{number}-0").splitlines()
        printed = next(line for line in lines if line.startswith("{"))
        folders.add(lines[lines.index(printed) - 1])
        assert json.loads(printed)["task"] == {"type": f"workerpool{number}", "index": 0}
    assert len(folders) == 3
    assert processes.live_children(cloud.home.children) == []


def test_replicas_listen_at_the_same_port_and_reach_each_other_by_cluster_spec(
    cloud: Cloud, shared: str
) -> None:
    """Real sockets: the chief connects to both workers, each of which listens at its own entry."""
    listen = (
        "import json,os,socket\n"
        "spec=json.loads(os.environ['CLUSTER_SPEC'])\n"
        "host,port=spec['cluster'][spec['task']['type']][spec['task']['index']].split(':')\n"
        "server=socket.create_server((host,int(port)))\n"
        "open(os.environ['SHARED']+f\"/{spec['task']['index']}\",'w').close()\n"
        "while True:\n"
        "    c,_=server.accept(); c.sendall(str(spec['task']['index']).encode()); c.close()\n"
    )
    call = (
        "import json,os,socket\n"
        "for entry in json.loads(os.environ['CLUSTER_SPEC'])['cluster']['workerpool1']:\n"
        "    host,port=entry.split(':')\n"
        "    print('heard',socket.create_connection((host,int(port)),30).recv(9).decode(),host)\n"
        "print('I am',socket.gethostname(),socket.gethostbyname(socket.gethostname()))\n"
    )
    job = pools(shared, "", (2, ""))
    python = sys.executable
    specs = job["job_spec"]["worker_pool_specs"]
    wait = f"{WAIT.format('0')}; {WAIT.format('1')}"
    specs[0]["container_spec"]["command"] = ["sh", "-c", f'{wait}; exec {python} -c "$CODE"']
    specs[1]["container_spec"]["command"] = [python, "-c", listen]
    specs[0]["container_spec"]["env"].append({"name": "CODE", "value": call})
    done = cloud.run(job)
    text = log(cloud, done)
    assert done.state == JobState.JOB_STATE_SUCCEEDED, text
    assert "heard 0" in text
    assert "heard 1" in text
    if hosts.has_namespaces():
        name = text.split("I am ")[1].split()[0]
        assert name.startswith("cmle-training-workerpool0-")
        assert text.split("I am ")[1].split()[1].startswith("127.")
        assert socket.gethostname() != name


def test_a_system_without_host_names_has_addresses_in_cluster_spec(
    cloud: Cloud, shared: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hosts, "has_namespaces", lambda: False)
    done = cloud.run(pools(shared, "echo $CLUSTER_SPEC", "sleep 600"))
    assert done.state == JobState.JOB_STATE_SUCCEEDED, done.error.message
    spec = json.loads(next(x for x in log(cloud, done).splitlines() if x.startswith("{")))
    assert spec["cluster"]["workerpool1"][0].startswith("127.")


def test_the_primary_replica_ends_the_job_and_all_others(cloud: Cloud, shared: str) -> None:
    worker = 'echo $$ > "$SHARED/pid"; exec sleep 600'
    done = cloud.run(pools(shared, WAIT.format("pid"), worker))
    assert done.state == JobState.JOB_STATE_SUCCEEDED
    pid = int((cloud.home.root / "shared/pid").read_text())
    assert processes.start_time(pid) is None


def test_a_worker_whose_code_fails_fails_the_job_and_is_named(cloud: Cloud, shared: str) -> None:
    done = cloud.run(pools(shared, "sleep 600", (2, "echo broken; exit 3")))
    assert done.state == JobState.JOB_STATE_FAILED
    assert done.error.message.startswith("The replica workerpool1-")
    assert "exited with a non-zero status of 3" in done.error.message
    assert "--replica workerpool1-" in done.error.message


def test_a_worker_that_is_done_early_does_not_end_the_job(cloud: Cloud, shared: str) -> None:
    chief = f"{WAIT.format('late')}"
    name = cloud.submit(pools(shared, chief, 'touch "$SHARED/early"')).name
    wait_until(file_in(shared, "early"))
    job_id = name.rpartition("/")[2]
    logged = cloud.home.jobs / job_id / "logs/workerpool1-0.log"
    wait_until(lambda: "exited with status 0" in logged.read_text())
    assert cloud.client.get_custom_job(name=name).state == JobState.JOB_STATE_RUNNING
    touch(shared, "late")
    assert finish(cloud, name).state == JobState.JOB_STATE_SUCCEEDED


def test_a_killed_worker_restarts_alone_with_an_empty_disk(cloud: Cloud, shared: str) -> None:
    worker = (
        'if test -e "$SHARED/first"; then test ! -e here && touch "$SHARED/again"; '
        'else touch here; touch "$SHARED/first"; fi; exec sleep 600'
    )
    chief = 'echo begun >> "$SHARED/begun"; ' + WAIT.format("again")
    name = cloud.submit(pools(shared, chief, worker)).name
    wait_until(file_in(shared, "first"))
    add(cloud, "kill", replica="workerpool1-0")
    done = finish(cloud, name)
    assert done.state == JobState.JOB_STATE_SUCCEEDED
    assert (cloud.home.root / "shared/begun").read_text() == "begun\n"
    assert "workerpool1-0 was killed (restart 1 of 5)" in log(cloud, done)


def test_restart_job_on_worker_restart_starts_all_of_them_again(cloud: Cloud, shared: str) -> None:
    worker = (
        'if test -e "$SHARED/first"; then touch "$SHARED/again"; fi; '
        'touch "$SHARED/first"; exec sleep 600'
    )
    chief = 'echo begun >> "$SHARED/begun"; ' + WAIT.format("again")
    spec = pools(shared, chief, worker, restart_job_on_worker_restart=True)
    name = cloud.submit(spec).name
    wait_until(file_in(shared, "first"))
    wait_until(file_in(shared, "begun"))
    add(cloud, "kill", replica="workerpool1-0")
    assert finish(cloud, name).state == JobState.JOB_STATE_SUCCEEDED
    assert (cloud.home.root / "shared/begun").read_text() == "begun\nbegun\n"


def test_the_killed_replica_is_the_cause_though_the_primary_fails_first(
    cloud: Cloud, shared: str
) -> None:
    """The primary notices that its peer is gone, and exits: its error must not fail the job."""
    worker = (
        'if test -e "$SHARED/pid"; then touch "$SHARED/again"; sleep 600; fi; '
        'echo $$ > "$SHARED/pid"; exec sleep 600'
    )
    chief = (
        'if test -e "$SHARED/second"; then ' + WAIT.format("again") + "; exit 0; fi; "
        'touch "$SHARED/second"; ' + WAIT.format("pid") + '; kill -9 $(cat "$SHARED/pid"); exit 1'
    )
    done = cloud.run(pools(shared, chief, worker, restart_job_on_worker_restart=True))
    assert done.state == JobState.JOB_STATE_SUCCEEDED, done.error.message


@pytest.mark.parametrize("replica", ["", "workerpool1-0"])
def test_a_preemption_of_one_replica_or_all_restarts_the_spot_job(
    cloud: Cloud, shared: str, replica: str
) -> None:
    worker = 'echo x >> "$SHARED/worker"; exec sleep 600'
    chief = (
        'echo x >> "$SHARED/chief"; '
        'while test $(cat "$SHARED/chief" "$SHARED/worker" | wc -l) -lt 4; do sleep 0.05; done'
    )
    name = cloud.submit(pools(shared, chief, worker, strategy="SPOT")).name
    wait_until(file_in(shared, "worker"))
    wait_until(file_in(shared, "chief"))
    add(cloud, "preempt", replica=replica)
    done = finish(cloud, name)
    assert done.state == JobState.JOB_STATE_SUCCEEDED, done.error.message
    who = "workerpool1-0 lost its machine" if replica else "all lost their machines"
    assert f"preempted: {who} (1 of 6)" in log(cloud, done)


def test_cancel_ends_every_replica_though_none_obeys_sigterm(
    cloud: Cloud, shared: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("localgcp.runner.replica.GRACE_SECONDS", 0.2)
    script = (
        "trap '' TERM; echo $$ > \"$SHARED/$(basename $(dirname $PWD))\"; while :; do sleep 1; done"
    )
    name = cloud.submit(pools(shared, script, (2, script))).name
    folder = cloud.home.root / "shared"
    wait_until(lambda: len([f for f in folder.iterdir() if f.read_text()]) == 3)
    cloud.client.cancel_custom_job(name=name)
    assert finish(cloud, name).state == JobState.JOB_STATE_CANCELLED
    for file in folder.iterdir():
        assert processes.start_time(int(file.read_text())) is None
    assert processes.live_children(cloud.home.children) == []


#: Starts a process in a session of its own, as torchrun does, and says its id.
ESCAPED = (
    f"{sys.executable} -c 'import os, subprocess; "
    'child = subprocess.Popen(["sleep", "600"], start_new_session=True); '
    'open(os.environ["SHARED"] + "/{0}", "w").write(str(child.pid))\''
)


@pytest.mark.parametrize("how", ["end", "kill", "cancel"])
def test_no_process_escapes_into_a_session_of_its_own(
    cloud: Cloud, shared: str, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("localgcp.runner.replica.GRACE_SECONDS", 0.2)
    chief = f"{ESCAPED.format('pid')}; test {how} = end || exec sleep 600"
    name = cloud.submit(pools(shared, chief, "sleep 600", disable_retries=True)).name
    file = Path(shared) / "pid"
    wait_until(lambda: file.exists() and file.read_text())
    if how == "kill":
        add(cloud, "kill")
    if how == "cancel":
        cloud.client.cancel_custom_job(name=name)
    finish(cloud, name)
    assert processes.start_time(int(file.read_text())) is None


def test_the_timeout_counts_all_attempts_together(cloud: Cloud, shared: str) -> None:
    add(cloud, "kill", replica="workerpool1-0", seconds=0.3, times=0)
    spec = pools(shared, "sleep 600", "sleep 600", restart_job_on_worker_restart=True,
                 timeout={"seconds": 1})  # fmt: skip
    done = cloud.run(spec)
    assert done.state == JobState.JOB_STATE_CANCELLED
    assert "longer than scheduling.timeout (1s)" in done.error.message


def test_a_program_that_one_replica_does_not_have_names_the_replica(
    cloud: Cloud, shared: str
) -> None:
    job = pools(shared, "sleep 600", "true")
    job["job_spec"]["worker_pool_specs"][1]["container_spec"]["command"] = ["no-such-program"]
    done = cloud.run(job)
    assert done.error.message.startswith(
        "The replica workerpool1-0 could not be started: no-such-program: No such file"
    )


def test_a_flex_start_job_waits_no_longer_than_max_wait_duration(cloud: Cloud, shared: str) -> None:
    add(cloud, "stockout", match="flex", times=2)
    flex = {"strategy": "FLEX_START", "max_wait_duration": {"seconds": 1}}
    job = {**command_job("true", scheduling=flex), "display_name": "flex"}
    done = cloud.run(job)
    assert done.state == JobState.JOB_STATE_FAILED
    assert "None came within scheduling.maxWaitDuration (1s)" in done.error.message


def test_lines_of_replicas_are_in_the_order_they_were_written(cloud: Cloud, shared: str) -> None:
    """To the half second: logs have no times of their own."""
    chief = f"echo first; {WAIT.format('noted')}; echo third"
    worker = f"{WAIT.format('begun')}; echo second; exec sleep 600"
    name = cloud.submit(pools(shared, chief, worker)).name
    folder = cloud.home.jobs / name.rpartition("/")[2] / "logs"

    def time_of(replica: str, text: bytes) -> Any:
        file = folder / f"{replica}.log"
        data = file.read_bytes() if file.exists() else b""
        times = LogTimes(file)
        return text in data and times.covers(len(data)) and times.of(data.index(text) + len(text))

    wait_until(lambda: time_of("workerpool0-0", b"first\n"))
    touch(shared, "begun")
    wait_until(lambda: time_of("workerpool1-0", b"second\n"))
    touch(shared, "noted")
    finish(cloud, name)
    assert (
        time_of("workerpool0-0", b"first\n")
        < time_of("workerpool1-0", b"second\n")
        < time_of("workerpool0-0", b"third\n")
    )
