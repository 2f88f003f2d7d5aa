"""F1 to F22: points of a submission, as calls of the real CLI that are held there."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any, Final

from tests.chaos.arena import STACK, Arena, wait_for
from tests.chaos.trial import Point, one_live_job
from vertex_training.customjob.kinds import CUSTOM_JOB, TUNING_JOB

SKEW: Final = Path(__file__).parent / "skew"


#: What a submission writes to the control bucket, in this order.
WRITES: Final = ("INTENT", "turn", "SENDING", "DONE")


def write(what: str, when: str) -> dict[str, Any]:
    """Return one of a submission's writes."""
    nth = WRITES.index(what) + 1
    return {"service": "storage", "method": "objects.insert", "nth": nth, "when": when}


def call(method: str, when: str) -> dict[str, Any]:
    """Return a call to the job service."""
    return {"service": "jobs", "method": method, "when": when}


def changed(job: str) -> str:
    """Return the same job with another request."""
    name, version, run = job.split(":")
    return f"{name}:{int(version) + 1}:{run}"


def again(job: str) -> str:
    """Return the next run of a job."""
    name, version, run = job.split(":")
    return f"{name}:{version}:{int(run) + 1}"


def deployed(arena: Arena, job: str) -> None:
    """Deploy the job, so that cloud and state have it."""
    if arena.finish(arena.up(job)) or one_live_job(arena, job):
        raise AssertionError("could not be prepared")


def up_changed(arena: Arena, job: str) -> subprocess.Popen[str]:
    return arena.up(changed(job))


def destroy(arena: Arena, job: str) -> subprocess.Popen[str]:
    return arena.start("destroy", "-y", "--skip-preview", jobs=job)


def refresh(arena: Arena, job: str) -> subprocess.Popen[str]:
    return arena.start("refresh", "-y", "--skip-preview", jobs=job)


def replace(arena: Arena, job: str) -> subprocess.Popen[str]:
    kind = TUNING_JOB if arena.kind is TUNING_JOB else CUSTOM_JOB  # a job of Batch is one as well
    type_ = f"pulumi-python:dynamic/vertex:{kind.message}"
    urn = f"urn:pulumi:{STACK}::chaos::{type_}::{job.split(':')[0]}"
    return arena.up(again(job), "--replace", urn)


def up_again(arena: Arena, job: str) -> subprocess.Popen[str]:
    return arena.up(again(job))


def up_and_wait(arena: Arena, job: str) -> subprocess.Popen[str]:
    """Run `up` until the job ends: the program waits, and a dead provider does not disturb it."""
    return arena.up(job, env={"CHAOS_WAIT": "10"})


def up_after_refresh(arena: Arena, job: str) -> subprocess.Popen[str]:
    return arena.up(job, "--refresh")


def up_with_skew(arena: Arena, job: str) -> subprocess.Popen[str]:
    """Run `up` on a machine whose clock is five minutes ahead."""
    path = f"{SKEW}:{arena.env['PYTHONPATH']}"
    return arena.up(job, env={"PYTHONPATH": path, "CHAOS_SKEW": "300"})


def refused_beside_living(arena: Arena, job: str) -> None:
    """Check that an edited job is refused while the previous job is active, with its name in the
    error.
    """
    for living in arena.live(arena.request_id(job)):
        code = arena.finish(arena.up(changed(job)))
        if (
            not code
            or living not in arena.said()
            or arena.submitted(arena.request_id(changed(job)))
        ):
            raise AssertionError(f"exit code {code} beside job {living}")


def up_edited_and_cancel(arena: Arena, job: str) -> subprocess.Popen[str]:
    refused_beside_living(arena, job)
    for living in arena.submitted(arena.request_id(job)):
        arena.service.cancel(living.name)
    return up_changed(arena, job)


def up_edited_and_put_back(arena: Arena, job: str) -> subprocess.Popen[str]:
    refused_beside_living(arena, job)
    return arena.up(job)


def ended(arena: Arena, job: str) -> str:
    if (
        arena.in_state()
        or arena.live(arena.request_id(job))
        or len(arena.submitted(arena.request_id(job))) != 1
    ):
        return f"state {arena.in_state()}, live {arena.live(arena.request_id(job))}"
    return ""


def replaced(arena: Arena, job: str) -> str:
    if live := arena.live(arena.request_id(job)):
        return f"the old job {live} still runs"
    return one_live_job(arena, changed(job))


def run_again(arena: Arena, job: str) -> str:
    if live := arena.live(arena.request_id(job)):
        return f"the replaced job {live} still runs"
    return one_live_job(arena, again(job))


def never_resubmitted(arena: Arena, job: str) -> str:
    """Check that a job whose API record is deleted stays in the state and is not
    submitted again.
    """
    submitted = arena.submitted(arena.request_id(job))
    if len(submitted) != 1 or arena.in_state() != {arena.request_id(job): submitted[0].job_id}:
        return f"{len(submitted)} submissions, state {arena.in_state()}"
    return ""


def second_up_beside(arena: Arena, job: str) -> subprocess.Popen[str]:
    """Hold the first `up`; a second one, with the lock removed, runs beside it and finishes."""
    first = arena.up(job)
    wait_for(lambda: any(e.held for e in arena.table.entries()), "the first up to be held")
    arena.unlock()
    second = arena.up(job)
    if arena.finish(second):
        raise AssertionError("the second up did not finish")
    return first


def lose_state(arena: Arena, _job: str) -> None:
    arena.forget_state()


def store_down(arena: Arena, _job: str) -> None:
    arena.fault("storage", "error", code="403", method="objects.*", match="submissions/", times=1)


def lists_lie(arena: Arena, _job: str) -> None:
    arena.fault("jobs", "stale", seconds=3)
    arena.fault("jobs", "short-pages")
    arena.fault("jobs", "error", code="UNAVAILABLE", method="ListCustomJobs")


def lose_record(arena: Arena, job: str) -> None:
    arena.fault("jobs", "lost-record", match=job.partition(":")[0])


POINTS: Final = (
    Point("F1", "before INTENT is written", write("INTENT", "before")),
    Point("F2", "INTENT written", write("INTENT", "after")),
    Point("F2b", "the turn taken", write("turn", "after")),
    Point("F3", "SENDING written, nothing sent", write("SENDING", "after")),
    Point("F4", "the request is lost", call("CreateCustomJob", "before"), dropped=True),
    Point("F5", "the job exists, the answer is under way", call("CreateCustomJob", "after")),
    Point("F6", "answered, before DONE is written", write("DONE", "before")),
    Point("F7", "DONE written", write("DONE", "after")),
    Point("F8", "create returned, the state is not saved", write("DONE", "after"), paused=True),
    Point("F9", "while up waits for the job", {**call("GetCustomJob", "before"), "nth": 2},
          command=up_and_wait),
    Point("F10", "destroy has cancelled the job", call("CancelCustomJob", "after"), deployed,
          destroy, recover=destroy, check=ended),
    Point("F10b", "destroy is about to cancel the job", call("CancelCustomJob", "before"), deployed,
          destroy, recover=destroy, check=ended),
    Point("F11", "replaced: the old job is gone, the new not sent", {**write("SENDING", "after"),
          "nth": 2, "match": "2-1"}, deployed, up_changed, recover=up_changed, check=replaced),
    Point("F12", "a second up beside it", call("CreateCustomJob", "after"),
          command=second_up_beside),
    Point("F13", "and the state is lost", write("DONE", "after"), meanwhile=lose_state),
    Point("F14", "and the control bucket fails", write("INTENT", "before"), meanwhile=store_down),
    Point("F15", "and lists lag, fail and come in pages", call("CreateCustomJob", "after"),
          meanwhile=lists_lie),
    Point("F16", "in a refresh, and the record is gone", call("GetCustomJob", "before"), deployed,
          refresh, meanwhile=lose_record, recover=up_after_refresh, check=never_resubmitted),
    Point("F17", "in up --replace", call("CancelCustomJob", "after"), deployed, replace,
          recover=up_again, check=run_again),
    Point("F18", "and the next machine's clock is 5 minutes ahead", write("SENDING", "after"),
          recover=up_with_skew),
    Point("F19", "and the job is edited, then the one there is cancelled",
          call("CreateCustomJob", "after"), recover=up_edited_and_cancel, check=replaced),
    Point("F20", "and the job is edited, then put back", call("CreateCustomJob", "after"),
          recover=up_edited_and_put_back),
    Point("F21", "the request is lost, and the job edited", call("CreateCustomJob", "before"),
          dropped=True, recover=up_edited_and_cancel, check=replaced),  # Batch's client sends again
    # An interrupted engine that still listens lets its provider send: then that job is in the way.
    Point("F22", "the turn taken, and the job edited", write("turn", "after"),
          recover=up_edited_and_cancel, check=replaced),
)  # fmt: skip
