"""What runs: runnables, exit codes, retries, several tasks, buckets, secrets, ends of servers."""

from __future__ import annotations

import pytest
from google.cloud import batch_v1

from localgcp.batch.volumes import HOSTS_FILE
from localgcp.faults.model import Fault
from localgcp.faults.table import inject
from localgcp.secretmanager import add_version
from tests.unit.localcloud.batch.conftest import Jobs, State, job, python
from tests.unit.localcloud.conftest import PROJECT


def script(text: str, **more: object) -> dict[str, object]:
    return {"script": {"text": text}, **more}


TaskState = batch_v1.TaskStatus.State
RETRY_PREEMPTED = [{"action": "RETRY_TASK", "action_condition": {"exit_codes": [50001]}}]


def test_a_task_is_tried_again_on_the_same_disk_and_both_ends_are_told(jobs: Jobs):
    code = "import os, sys; n = os.environ['BATCH_TASK_RETRY_ATTEMPT']; print('try', n)\n"
    code += "open('n', 'a').write(n); sys.exit(0 if open('n').read() == '012' else 9)"
    ended = jobs.run(job(python(code), max_retry_count=3))
    assert ended.status.state is State.SUCCEEDED
    assert jobs.codes(ended.name) == [9, 9]
    states = [e.task_state for e in jobs.tasks(ended.name)[0].status.status_events]
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
    [event] = [e for e in jobs.tasks(ended.name)[0].status.status_events if "task_execution" in e]
    assert event.description.endswith("due to Spot VM preemption with exit code 50001.")


def test_only_machines_of_spot_are_preempted_and_a_killed_process_is_137(jobs: Jobs):
    for kind in ("preempt", "kill"):
        inject(jobs.cloud.home, Fault.parse(service="jobs", kind=kind, match="plain", seconds=0.2))
    ended = jobs.run(job(python("import time; time.sleep(60)")), "plain")
    assert jobs.codes(ended.name) == [137]


def test_three_tasks_meet_by_the_hosts_file_and_wait_at_the_barrier(jobs: Jobs):
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
print("at barrier", time.time())
"""
    late = "import os, time; time.sleep(float(os.environ['BATCH_TASK_INDEX'])); print(time.time())"
    seen = python(code)
    seen["container"]["volumes"] = [f"{HOSTS_FILE}:{HOSTS_FILE}"]
    over = python("import time; print('over', time.time())")
    group = {"task_count": 3, "require_hosts_file": True, "task_count_per_node": 1}
    ended = jobs.run(job(seen, python(late), {"barrier": {}}, over, group=group))
    assert ended.status.state is State.SUCCEEDED, jobs.log(ended)
    logs = [jobs.log(ended, f"task-{n}").splitlines() for n in range(3)]
    assert "met ['1', '2']" in logs[0]
    over = [float(line.split()[1]) for log in logs for line in log if line.startswith("over")]
    before = [float(line) for log in logs for line in log if line[:1].isdigit()]
    assert max(before) <= min(over)
    assert dict(ended.status.task_groups["group0"].counts) == {"SUCCEEDED": 3}


def test_a_container_that_does_not_mount_the_hosts_file_has_none(jobs: Jobs):
    code = "import os; print(os.environ.get('BATCH_HOSTS_FILE'))"
    made = job(python(code), group={"task_count": 2, "require_hosts_file": True})
    assert "None" in jobs.log(jobs.run(made)).splitlines()


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


def test_two_days_in_the_queue_end_a_job(make_jobs):
    jobs = make_jobs(start=False)
    made = jobs.create(job(python("1")))
    jobs.advance(days=2.1)
    jobs.batch.scheduler._admit(jobs.batch.service.jobs.get(made.name))
    ended = jobs.client.get_job(name=made.name)
    assert ended.status.state is State.FAILED
    assert "2 days" in ended.status.status_events[-1].description


def test_script_runs_although_another_process_has_its_file_open_for_writing(jobs: Jobs):
    """A child of the server inherits the files that its threads write, until it is the program."""
    holds = "import pathlib, time; f = open('../script-2', 'w')"
    ended = jobs.run(
        job(
            python(f"{holds}; pathlib.Path('held').touch(); time.sleep(60)", background=True),
            script("until [ -e held ]; do sleep 0.05; done"),
            script("#!/usr/bin/env -S python3 -u\nprint('ran by', __file__)"),
        )
    )
    assert ended.status.state is State.SUCCEEDED, jobs.log(ended, "agent")
    assert "ran by" in jobs.log(ended)


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
