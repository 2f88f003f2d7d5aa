"""What runs: runnables, exit codes, retries, several tasks, buckets, secrets, ends of servers."""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.api_core import exceptions

from localgcp import alerting
from localgcp.batch.records import State as Stored
from localgcp.batch.records import TaskState
from localgcp.batch.runnables import HOSTS_FILE
from localgcp.containers.engines import Docker
from localgcp.faults.model import Fault
from localgcp.faults.table import clear, inject
from localgcp.inventory.store import ACCOUNT
from localgcp.reads.secretmanager import add_version
from tests.unit.localcloud.batch.conftest import Jobs, State, job, python
from tests.unit.localcloud.conftest import OFTEN, PARENT, PROJECT, TRAINER, wait_until
from tests.unit.localcloud.vertex.estate import Estate


def script(text: str, **more: object) -> dict[str, object]:
    return {"script": {"text": text}, **more}


QUICK = job(python("print('hello')"))
SLOW = job(python("import time; time.sleep(60)"))
RETRY_PREEMPTED = [{"action": "RETRY_TASK", "action_condition": {"exit_codes": [50001]}}]


def test_a_task_is_tried_again_on_the_same_disk_and_both_ends_are_told(jobs: Jobs):
    code = "import os, sys; n = os.environ['BATCH_TASK_RETRY_ATTEMPT']; print('try', n)\n"
    code += "open('n', 'a').write(n); sys.exit(0 if open('n').read() == '012' else 9)"
    ended = jobs.run(job(python(code), max_retry_count=3))
    assert ended.status.state is State.SUCCEEDED
    assert jobs.codes(ended.name) == [9, 9]
    states = [e["taskState"] for e in jobs.tasks(ended.name)[0].events]
    once = [TaskState.ASSIGNED, TaskState.RUNNING, TaskState.FAILED, TaskState.PENDING]
    assert states == [*once, *once, TaskState.ASSIGNED, TaskState.RUNNING, TaskState.SUCCEEDED]


@pytest.mark.parametrize("where", ["task", "runnable"])
def test_what_takes_too_long_ends_with_50005(jobs: Jobs, where: str):
    slow, limit = "import time; time.sleep(60)", {"seconds": 1}
    of_runnable = {"timeout": limit} if where == "runnable" else {}
    of_task = {"max_run_duration": limit} if where == "task" else {}
    ended = jobs.run(job(python(slow, **of_runnable), **of_task))
    assert (ended.status.state, jobs.codes(ended.name)) == (State.FAILED, [50005])


def test_a_preempted_task_runs_again_on_another_machine_and_resumes_from_its_bucket(jobs: Jobs):
    jobs.cloud.bucket("local-data")
    jobs.cloud.grant("b/local-data", "roles/storage.objectUser")
    inject(jobs.cloud.home, Fault.parse(service="jobs", kind="preempt", match="spot", seconds=4))
    code = """
import os, pathlib, time
saved = pathlib.Path("/gcs/local-data/checkpoint")
print("begins at", saved.read_text() if saved.exists() else "0", os.path.exists("disk"))
open("disk", "w").close()
if not saved.exists():
    saved.write_text("1")
    time.sleep(60)
"""
    mounted = {"gcs": {"remote_path": "local-data"}, "mount_path": "/gcs/local-data"}
    made = job(python(code), policy={"provisioning_model": "SPOT"}, volumes=[mounted],
               max_retry_count=2, lifecycle_policies=RETRY_PREEMPTED)  # fmt: skip
    ended = jobs.run(made, "spot")
    assert (ended.status.state, jobs.codes(ended.name)) == (State.SUCCEEDED, [50001])
    lines = [line for line in jobs.log(ended).splitlines() if line.startswith("begins")]
    assert lines == ["begins at 0 False", "begins at 1 False"]
    [event] = [e for e in jobs.tasks(ended.name)[0].events if "taskExecution" in e]
    assert event["description"].endswith("due to Spot VM preemption with exit code 50001.")


def test_three_tasks_meet_by_the_hosts_file(jobs: Jobs):
    code = """
import os, socket, time
rank, hosts = int(os.environ["BATCH_TASK_INDEX"]), open(os.environ["BATCH_HOSTS_FILE"])
hosts = hosts.read().split()
assert os.environ["BATCH_TASK_COUNT"] == "3" and len(set(hosts)) == 3
mine = hosts[int(os.environ["BATCH_NODE_INDEX"])]
if rank == 0:
    with socket.create_server((mine, 29533)) as server:
        got = sorted(server.accept()[0].recv(9).decode() for _ in range(2))
    print("met", got)
else:
    for _ in range(200):
        try:
            socket.create_connection((hosts[0], 29533)).send(str(rank).encode())
            break
        except OSError:
            time.sleep(0.05)
"""
    seen = python(code)
    seen["container"]["volumes"] = [f"{HOSTS_FILE}:{HOSTS_FILE}"]
    group = {"task_count": 3, "require_hosts_file": True, "task_count_per_node": 1}
    ended = jobs.run(job(seen, group=group))
    assert ended.status.state is State.SUCCEEDED, jobs.log(ended)
    assert "met ['1', '2']" in jobs.log(ended).splitlines()
    assert dict(ended.status.task_groups["group0"].counts) == {"SUCCEEDED": 3}


def test_a_bucket_that_is_not_there_or_not_granted_fails_the_job_with_its_reason(jobs: Jobs):
    jobs.cloud.bucket("local-closed")
    for name, said in (("local-closed", "objectUser"), ("local-none", "does not exist")):
        volume = {"gcs": {"remote_path": name}, "mount_path": f"/gcs/{name}"}
        ended = jobs.run(job(python("1"), volumes=[volume]))
        assert ended.status.state is State.FAILED
        assert said in ended.status.status_events[-1].description


def test_secrets_reach_the_task_and_neither_a_record_nor_a_log(jobs: Jobs):
    value = "hunter2-hunter2"
    add_version(jobs.cloud.home.secrets, PROJECT, "token", value.encode())
    jobs.cloud.store.put("gcp:secretmanager/secret:Secret", f"projects/{PROJECT}/secrets/token",
                         PROJECT, {}, {})  # fmt: skip
    made = job(
        python("import os; print(len(os.environ['TOKEN']))"),
        environment={"secret_variables": {"TOKEN": f"projects/{PROJECT}/secrets/token/versions/1"}},
    )
    refused = jobs.run(made)
    assert (refused.status.state, jobs.codes(refused.name)) == (State.FAILED, [50000])
    assert "secretmanager.versions.access" in jobs.log(refused, "agent")
    jobs.cloud.grant(f"projects/{PROJECT}/secrets/token", "roles/secretmanager.secretAccessor")
    ended = jobs.run(made)
    assert str(len(value)) in jobs.log(ended).splitlines()
    secret = made["task_groups"][0]["task_spec"]["environment"]["secret_variables"]
    secret["TOKEN"] = latest = f"projects/{PROJECT}/secrets/token/versions/latest"
    add_version(jobs.cloud.home.secrets, PROJECT, "token", b"\xff")
    assert f"{latest} is not UTF-8 text" in jobs.log(jobs.run(made), "agent")
    secret["TOKEN"] = f"projects/{PROJECT}/secrets/token/versions/9"
    hint = "not found. Set a value for the secret: vt local secret set token"
    assert hint in jobs.log(jobs.run(made), "agent")
    below = [*jobs.cloud.home.batch.rglob("*"), jobs.cloud.home.database]
    for file in (each for each in below if each.is_file()):
        assert value.encode() not in file.read_bytes(), file


def test_an_account_that_may_not_report_stays_scheduled_until_the_service_gives_up(jobs: Jobs):
    policy = jobs.cloud.store.policy(f"projects/{PROJECT}")
    jobs.cloud.store.set_policy(f"projects/{PROJECT}", (), expected_etag=policy.etag)
    made = jobs.create(job(python("1")))
    jobs.reaches(made.name, State.SCHEDULED)
    jobs.advance(seconds=1000)
    assert jobs.client.get_job(name=made.name).status.state is State.SCHEDULED
    jobs.advance(seconds=100)
    ended = jobs.ended(made.name)
    assert "no VM has agent reporting correctly" in ended.status.status_events[-1].description
    other = jobs.create(job(python("print('late')")))
    jobs.reaches(other.name, State.SCHEDULED)
    jobs.cloud.grant(f"projects/{PROJECT}", "roles/batch.agentReporter")
    assert jobs.ended(other.name).status.state is State.SUCCEEDED


def test_commands_and_images_that_are_not_there_say_so_in_the_agents_log(jobs: Jobs):
    missing = {"container": {"image_uri": "python:3.11", "entrypoint": "/no/such/program"}}
    assert jobs.codes(jobs.run(job(missing)).name) == [127]
    silent = {"container": {"image_uri": "debian:12"}}
    ended = jobs.run(job(silent))
    assert jobs.codes(ended.name) == [50000]
    assert "debian:12" in jobs.log(ended, "agent")


def test_next_server_settles_what_a_killed_one_left(make_jobs: Callable[..., Jobs]) -> None:
    jobs = make_jobs(start=False)
    names = ("lost", "cancelled", "gone", "waits")
    made = {each: jobs.create(job(script("true"), group={"task_count": 4}), each) for each in names}
    table, begun = jobs.batch.service.jobs, (Stored.SCHEDULED, Stored.RUNNING)
    for name, states in (
        ("lost", begun), ("cancelled", (*begun, Stored.CANCELLING)), ("gone", (Stored.DELETING,)),
    ):  # fmt: skip
        for before, state in itertools.pairwise((Stored.QUEUED, *states)):
            assert table.move(made[name].name, state, (before,))
    for number, state in enumerate(("RUNNING", "ASSIGNED", "SUCCEEDED")):
        table.move_task(made["lost"].uid, number, TaskState(state))
    jobs.batch.scheduler.start()
    lost = jobs.ended(made["lost"].name)
    assert lost.status.state is State.FAILED
    assert "was stopped while the job ran" in lost.status.status_events[-1].description
    states = [task.state.name for task in jobs.tasks(lost.name)]
    assert states == ["FAILED", "FAILED", "SUCCEEDED", "UNEXECUTED"]
    assert [jobs.codes(lost.name, number) for number in (0, 1, 2)] == [[50002], [50002], []]
    with pytest.raises(exceptions.NotFound):
        jobs.client.get_job(name=made["gone"].name)
    assert jobs.ended(made["cancelled"].name).status.state is State.CANCELLED
    assert jobs.ended(made["waits"].name).status.state is State.SUCCEEDED
    jobs.batch.scheduler.stop()


def test_of_three_jobs_two_run_and_the_third_stays_queued(jobs: Jobs) -> None:
    first, second, third = (jobs.create(SLOW).name for _ in range(3))
    for name in (first, second):
        jobs.reaches(name, State.RUNNING)
    assert jobs.client.get_job(name=third).status.state is State.QUEUED
    jobs.client.cancel_job(name=first)
    jobs.reaches(third, State.RUNNING)


def test_script_runs_although_another_process_has_its_file_open_for_writing(jobs: Jobs):
    """A child of the server inherits the files that its threads write, until it is the program."""
    waits = script("until [ -e held ]; do sleep 0.05; done")
    made = jobs.create(
        job(waits, script("#!/usr/bin/env -S python3 -u\nprint('ran by', __file__)"))
    )
    jobs.reaches(made.name, State.RUNNING)
    folder = jobs.cloud.home.batch / made.uid / "tasks" / "0"
    wait_until((folder / "work").is_dir)
    with (folder / "script-1").open("w"):
        (folder / "work" / "held").touch()
        ended = jobs.ended(made.name)
    assert ended.status.state is State.SUCCEEDED, jobs.log(ended, "agent")
    assert "ran by" in jobs.log(ended)


def test_a_container_has_the_variables_of_a_file_that_a_script_wrote(jobs: Jobs) -> None:
    write = script("printf '# A=no\\nA=1=2\\nB=file\\nnothing\\nC=\\n' > \"$TMPDIR/env\"")
    shows = python("import os; print('has', [os.environ.get(name) for name in 'ABC'])")
    shows["container"]["options"] = "-x --env-file /tmp/env --y"
    ended = jobs.run(job(write, shows, environment={"variables": {"B": "job"}}))
    assert "has ['1=2', 'job', '']" in jobs.log(ended).splitlines(), jobs.log(ended, "agent")
    shows["container"]["options"] = "--env-file=/tmp/none"
    refused = jobs.run(job(shows))
    assert "--env-file=/tmp/none: No such file or directory" in jobs.log(refused, "agent")


@pytest.mark.parametrize(
    ("runnable", "code", "cause"),
    [
        (script("#!/no/such/shell\n"), 127, "/no/such/shell: No such file or directory"),
        (script("#! \trelative\r\n"), 127, "./relative\\r: No such file or directory"),
        (script("#!/bin/sh -e -u\n"), 2, "exited with status 2"),  # one argument, "-e -u"
        (python("", container={"image_uri": "python:3.11", "entrypoint": "/etc/passwd"}), 126,
         "/etc/passwd: Permission denied"),
    ],
)  # fmt: skip
def test_agents_log_gives_the_cause_of_a_program_that_cannot_start(jobs, runnable, code, cause):
    ended = jobs.run(job(runnable))
    assert jobs.codes(ended.name) == [code]
    assert cause in jobs.log(ended, "agent")


def test_logs_are_in_cloud_logging_if_the_job_asks_and_its_account_may(jobs: Jobs):
    from google.cloud.logging_v2.services.logging_service_v2 import LoggingServiceV2Client
    from google.cloud.logging_v2.services.logging_service_v2.transports import (
        LoggingServiceV2GrpcTransport,
    )

    loud = jobs.run(job(python("print('heard')"), python("raise SystemExit(1)")))
    silent = jobs.run({**QUICK, "logs_policy": {}})
    channel = grpc.insecure_channel(jobs.address)
    client = LoggingServiceV2Client(transport=LoggingServiceV2GrpcTransport(channel=channel))

    def read(text: str) -> list[str]:
        found = client.list_log_entries({"resource_names": [f"projects/{PROJECT}"], "filter": text})
        return [entry.text_payload for entry in found]

    task_logs = f'logName="projects/{PROJECT}/logs/batch_task_logs" AND labels.job_uid='
    assert read(task_logs + loud.uid) == ["heard"]
    assert read(task_logs + silent.uid) == []
    agent = f'resource.type="batch.googleapis.com/Job" AND labels.job_uid="{loud.uid}"'
    assert any("exited with status 1" in line for line in read(agent))
    place = f"projects/{PROJECT}"
    jobs.cloud.store.set_policy(place, (), expected_etag=jobs.cloud.store.policy(place).etag)
    assert read(task_logs + loud.uid) == []
    channel.close()


RESERVATION = f"projects/{PROJECT}/zones/us-central1-a/reservations/cpu"


def said(jobs: Jobs, name: str) -> str:
    """The last event of a job that waits."""
    wait_until(lambda: jobs.client.get_job(name=name).status.status_events)
    found = jobs.client.get_job(name=name)
    assert found.status.state is State.QUEUED
    return found.status.status_events[-1].description


@pytest.mark.parametrize("seconds", [None, 1.0])
def test_a_stock_out_is_waited_for_until_it_ends_or_is_cleared(jobs: Jobs, seconds: float | None):
    given = {} if seconds is None else {"seconds": seconds}
    inject(jobs.cloud.home, Fault.parse(service="jobs", kind="stockout", match="red", **given))
    made = jobs.create(QUICK)
    assert "STOCKOUT" in said(jobs, made.name)
    if seconds is None:
        clear(jobs.cloud.home)
    assert jobs.ended(made.name).status.state is State.SUCCEEDED


def test_a_job_waits_for_the_machines_of_the_reservation_it_names(jobs: Jobs):
    Estate(jobs.cloud.home.root).reservation(count=1)
    policy = {"reservation": RESERVATION}
    slow = jobs.create(job(python("import time; time.sleep(60)"), policy=policy))
    jobs.reaches(slow.name, State.RUNNING)
    waits = jobs.create(job(python("1"), policy=policy))
    assert "no free machines: 1 of 1" in said(jobs, waits.name)
    other = {**policy, "machine_type": "n1-standard-8"}
    for wrong, text in ((other, "the job requests n1-standard-8"),
                        ({"reservation": RESERVATION + "x"}, "does not exist"),
                        ({"reservation": "../../x"}, "does not exist")):  # fmt: skip
        made = jobs.create(job(python("1"), policy=wrong))
        assert text in said(jobs, made.name)
    jobs.client.cancel_job(name=slow.name).result(timeout=20, polling=OFTEN)
    assert jobs.ended(waits.name).status.state is State.SUCCEEDED


#: Sends the calls of ``argv``, and prints the code and the text of each answer.
CALLER = """
import http.client, json, sys
for verb, path, body in json.loads(sys.argv[2]):
    connection = http.client.HTTPConnection(sys.argv[1])
    connection.request(verb, path, body and json.dumps(body))
    answer = connection.getresponse()
    error = json.loads(answer.read() or b"{}").get("error", {})
    print("answered", json.dumps([answer.status, error.get("message", "")]))
"""


def answers(jobs: Jobs, *calls: tuple[str, str, Any]) -> list[tuple[int, str]]:
    """Codes and texts of the answers to calls that the code of a job sends."""
    runnable = python(CALLER)
    paths = [(verb, f"/v1/{path}", body) for verb, path, body in calls]
    runnable["container"]["commands"] += [jobs.address, json.dumps(paths)]
    ended = jobs.run(job(runnable))
    lines = [line.partition(" ") for line in jobs.log(ended).splitlines()]
    return [tuple(json.loads(line)) for word, _, line in lines if word == "answered"]


def test_code_of_a_job_calls_what_its_account_may(jobs: Jobs) -> None:
    place = jobs.run(QUICK, "j").name.partition("/jobs/")[0]
    name, store = f"{place}/jobs/j", jobs.cloud.store
    body: dict[str, Any] = {"taskGroups": [{"taskSpec": {"runnables": [script("true")]}}]}
    of_trainer = body | {"allocationPolicy": {"serviceAccount": {"email": TRAINER}}}
    calls = [
        ("POST", f"{PARENT}/jobs", of_trainer, "jobs.create", PARENT),
        ("GET", f"{PARENT}/jobs", None, "jobs.list", PARENT),
        ("GET", name, None, "jobs.get", name),
        ("POST", f"{name}:cancel", {}, "jobs.cancel", name),
        ("DELETE", name, None, "jobs.delete", name),
    ]
    assert answers(jobs, *(call[:3] for call in calls)) == [
        (403, f"Permission 'batch.{what}' denied on resource '{on}' (or it may not exist).")
        for *_, what, on in calls
    ]
    jobs.cloud.grant(f"projects/{PROJECT}", "roles/batch.jobsViewer")
    read = ("GET", name, None)
    assert [code for code, _ in answers(jobs, read, ("DELETE", name, None))] == [200, 403]
    jobs.cloud.grant(f"projects/{PROJECT}", "roles/batch.jobsEditor")
    other = f"other@{PROJECT}.iam.gserviceaccount.com"
    store.put(ACCOUNT, other, PROJECT, {}, {"email": other})
    of_other = body | {"allocationPolicy": {"serviceAccount": {"email": other}}}
    create = ("POST", f"{PARENT}/jobs", of_other)
    [(code, text)] = answers(jobs, create)
    assert (code, "act as" in text) == (403, True)
    jobs.cloud.grant(f"projects/{PROJECT}/serviceAccounts/{other}", "roles/iam.serviceAccountUser")
    assert [code for code, _ in answers(jobs, create, ("DELETE", name, None))] == [200, 200]


IMAGE = f"us-central1-docker.pkg.dev/{PROJECT}/training/probe:v1"
HOSTS = "/etc/cloudbatch-taskgroup-hosts"


#: In place of docker: an image with an entrypoint; a run prints its arguments.
PROGRAM = """\
#!{python}
import json, sys
if sys.argv[1:3] == ["image", "inspect"]:
    print(json.dumps({{"Entrypoint": ["python", "probe.py"], "Cmd": ["show"]}}))
if sys.argv[1] == "run":
    print(json.dumps(sys.argv[2:]), flush=True)
    sys.exit(7)
"""


def test_an_image_is_pulled_by_the_account_and_gets_its_words_variables_and_volumes(
    jobs: Jobs, tmp_path: Path
) -> None:
    program = tmp_path / "docker"
    program.write_text(PROGRAM.format(python=sys.executable))
    program.chmod(0o700)
    service: Any = jobs.batch.service
    containers = service._refusal.__self__
    containers.port, containers._engine = 5000, Docker(str(program), "home", "1000:1000")
    bucket = jobs.cloud.bucket("local-data")
    bucket.blob("in/a").upload_from_string("A")
    jobs.cloud.grant("b/local-data", "roles/storage.objectUser")
    container = {
        "image_uri": IMAGE,
        "commands": ["train", "$(PATH)"],
        "volumes": ["/mnt/data:/gcs/local-data:rw", "/mnt/data/in:/in", f"{HOSTS}:{HOSTS}"],
    }
    made = job(
        {"container": container},
        volumes=[{"gcs": {"remote_path": "local-data"}, "mount_path": "/mnt/data"}],
        environment={"variables": {"MINE": "/mnt/data"}},
        group={"require_hosts_file": True},
    )
    denied = jobs.run(made)
    assert (denied.status.state, jobs.codes(denied.name)) == (State.FAILED, [125])
    assert "artifactregistry.repositories.downloadArtifacts" in jobs.log(denied, "agent")
    jobs.cloud.grant(f"projects/{PROJECT}", "roles/artifactregistry.reader")
    ended = jobs.run(made)
    assert jobs.codes(ended.name) == [7], jobs.log(ended, "agent")
    [line] = [line for line in jobs.log(ended).splitlines() if line[:1] == "["]
    words = json.loads(line)
    folder = jobs.cloud.home.batch / ended.uid
    assert words[words.index("--entrypoint") + 1] == "python"
    assert words[-4:] == [f"127.0.0.1:5000/{PROJECT}/training/probe:v1", "probe.py", *words[-2:]]
    assert words[-2:] == ["train", "$(PATH)"]
    volumes = [words[at + 1] for at, word in enumerate(words) if word == "--volume"]
    assert sorted(volumes) == sorted(
        [f"{folder}/gcs:/gcs", f"{folder}/gcs/local-data/in:/in", f"{folder}/hosts:{HOSTS}"]
    )
    variables = [words[at + 1] for at, word in enumerate(words) if word == "--env"]
    assert {"MINE=/mnt/data", "BATCH_TASK_INDEX=0", f"BATCH_HOSTS_FILE={HOSTS}"} <= {*variables}


TOPIC = "projects/local-training/topics/jobs"


def told(jobs: Jobs) -> list[str]:
    """Titles of what was written, sorted: files have no order of their own within a second."""
    return sorted(each.title for each in alerting.read_notifications(jobs.cloud.home.notifications))


def asked(*wanted: dict[str, str], topic: str = TOPIC) -> dict[str, Any]:
    return {"notifications": [{"pubsub_topic": topic, "message": each} for each in wanted]}


def test_tasks_that_never_began_are_told_as_well(jobs: Jobs) -> None:
    wanted = {"type_": "TASK_STATE_CHANGED", "new_task_state": "UNEXECUTED"}
    group = {"task_count": 2, "parallelism": 1}
    what = job({"script": {"text": "sleep 60"}}, group=group) | asked(wanted)
    made = jobs.create(what, "cut")
    jobs.reaches(made.name, State.RUNNING)
    jobs.client.cancel_job(name=made.name)
    jobs.ended(made.name)
    assert told(jobs) == ["cut/taskGroups/group0/tasks/1 is UNEXECUTED"]
