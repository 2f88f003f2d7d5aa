"""What keeps a job in the queue, and who may call."""

from __future__ import annotations

import json
import urllib.request

import pytest

from localgcp.access.guests import Guest
from localgcp.batch import checks
from localgcp.errors import ApiError
from localgcp.faults.model import Fault
from localgcp.faults.table import clear, inject
from localgcp.inventory.store import ACCOUNT
from tests.unit.localcloud.batch.conftest import Jobs, State, job, python
from tests.unit.localcloud.conftest import OFTEN, PARENT, PROJECT, TRAINER, wait_until
from tests.unit.localcloud.vertex.estate import Estate

QUICK = job(python("print(1)"))
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
    assert "used up: 1 of 1" in said(jobs, waits.name)
    other = {**policy, "machine_type": "n1-standard-8"}
    for wrong, text in ((other, "asks for n1-standard-8"),
                        ({"reservation": RESERVATION + "x"}, "does not exist"),
                        ({"reservation": "../../x"}, "does not exist")):  # fmt: skip
        made = jobs.create(job(python("1"), policy=wrong))
        assert text in said(jobs, made.name)
    jobs.client.cancel_job(name=slow.name).result(timeout=20, polling=OFTEN)
    assert jobs.ended(waits.name).status.state is State.SUCCEEDED


def test_a_job_may_call_what_its_account_may(make_jobs):
    """A program of the owner may all; what descends from a job is asked for its roles."""
    jobs = make_jobs(start=False)
    store, guest = jobs.cloud.store, Guest(TRAINER)
    read = (guest, PROJECT, "batch.jobs.get", "x")
    write = (guest, PROJECT, "batch.jobs.create", "x")
    checks.check_caller(store, None, *write[1:])
    for call in (read, write):
        with pytest.raises(ApiError, match=r"Permission 'batch.jobs.\w+' denied"):
            checks.check_caller(store, *call)
    jobs.cloud.grant(f"projects/{PROJECT}", "roles/batch.jobsViewer")
    checks.check_caller(store, *read)
    with pytest.raises(ApiError):
        checks.check_caller(store, *write)
    jobs.cloud.grant(f"projects/{PROJECT}", "roles/batch.jobsEditor")
    checks.check_caller(store, *write)
    other = f"other@{PROJECT}.iam.gserviceaccount.com"
    store.put(ACCOUNT, other, PROJECT, {}, {"email": other})
    with pytest.raises(ApiError, match="act as"):
        checks.check_account(store, guest, PROJECT, other)
    jobs.cloud.grant(f"projects/{PROJECT}/serviceAccounts/{other}", "roles/iam.serviceAccountUser")
    checks.check_account(store, guest, PROJECT, other)


def test_rest_takes_paths_and_bodies_as_google_does(make_jobs):
    jobs = make_jobs(start=False)

    def status(path: str, body: object = None, verb: str = "GET") -> int:
        data = None if body is None else json.dumps(body).encode()
        url = f"http://{jobs.address}/v1/{path}"
        request = urllib.request.Request(url, data, method=verb)
        try:
            return urllib.request.urlopen(request, timeout=20).status
        except urllib.error.HTTPError as error:
            return error.code

    task = {"taskSpec": {"runnables": [{"script": {"text": "true"}}]}}
    jobs_at = f"{PARENT}/jobs"
    assert status(f"{jobs_at}?jobId=a", {"taskGroups": [task]}, "POST") == 200
    assert status(f"{jobs_at}?jobId=a", {"taskGroups": [task]}, "POST") == 409
    assert status(f"{jobs_at}?jobId=..%2F..%2Fb", {"taskGroups": [task]}, "POST") == 400
    assert status(f"{jobs_at}?jobId=b", {"taskGroups": [task], "nonsense": 1}, "POST") == 400
    assert status(f"{jobs_at}/a%2Fb") == 404
    assert status(f"{jobs_at}/a/taskGroups/group1/tasks") == 404
    assert status(f"{jobs_at}/a/taskGroups/group0/tasks/0") == 200
    assert status(f"{jobs_at}/a/taskGroups/group0/tasks/1") == 404
    assert status(f"{jobs_at}/a/taskGroups/group0/tasks/x") == 400
    assert status(f"{jobs_at}/a:cancel", {}, "POST") == 200
    assert status(f"{jobs_at}/a:cancel", {}, "POST") == 400
    assert status(f"{jobs_at}/a", verb="DELETE") == 200
    assert status(f"{jobs_at}/a", verb="DELETE") == 404
