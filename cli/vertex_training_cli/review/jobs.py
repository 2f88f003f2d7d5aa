"""Jobs of a plan: actions, machines and maximum costs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from vertex_training.catalog import costs
from vertex_training.catalog.costs import JobCost, PoolCost, usd
from vertex_training.customjob.batch.offers import NAMES as SERVICES
from vertex_training.customjob.batch.offers import Offer, offers
from vertex_training.customjob.kinds import CUSTOM_JOB, kind_of_fields
from vertex_training.customjob.protocol.ports import IDLE_STOP, LADDER, MODEL, RECORD_DELETED
from vertex_training.customjob.protocol.waiting import format_duration
from vertex_training.customjob.rules.command_lines import started_processes
from vertex_training.customjob.rules.job import Job
from vertex_training.customjob.rules.machines import memory_comparisons
from vertex_training.errors import Problem
from vertex_training_cli.engine.plan import (
    JOBS,
    NOTHING_OBSERVED,
    REPEATED_HINT,
    CheckpointObservation,
    JobObservation,
    Observations,
    Plan,
    Step,
    rungs,
)
from vertex_training_cli.engine.values import FieldDifference, as_mapping, diff_fields
from vertex_training_cli.review.parts import Finding, Quote

Action = Literal["submit", "adopt", "replace", "cancel", "change", "defer", "keep"]
#: Step -> action on the job. An update changes only labels and options, without a submission.
ACTIONS: Final[Mapping[str, Action]] = {
    "create": "submit",
    "replace": "replace",
    "create-replacement": "submit",
    "delete": "cancel",
    "delete-replaced": "cancel",
    "update": "change",
    "same": "keep",
}
#: Rule id of the problem if the same request would replace a job.
SAME_REQUEST: Final = "job-same-request"
_STATE: Final = re.compile(r"[A-Z_]{1,60}")
#: Final states of jobs: google-cloud-aiplatform 2.7.0, types/job_state.py.
ENDED: Final = ("SUCCEEDED", "FAILED", "CANCELLED", "EXPIRED", "PARTIALLY_SUCCEEDED")


@dataclass(frozen=True, slots=True)
class RungRequest:
    """One rung of a job's ladder. At most one rung runs at a time."""

    number: int
    what: str
    """Differences between the rung's request and the job file."""
    strategy: str
    reservation: str
    cost: JobCost

    @property
    def machines(self) -> tuple[str, ...]:
        """Machines, as in ``JobChange``."""
        return _machines(self.cost)

    def __str__(self) -> str:
        """Return machines, strategy and maximum cost in a line."""
        parts = (*self.machines, self.strategy, self.reservation)
        price = f"at most {usd(self.cost.worst_case)}{self.cost.elsewhere}"
        return ", ".join([*(part for part in parts if part), price])


@dataclass(frozen=True, slots=True)
class JobChange:
    """The change of one job, with its properties after the plan (before it, if removed)."""

    name: str
    action: Action
    region: str
    strategy: str
    reservation: str
    """Names of reservations, or the kind of affinity; empty without one."""
    account: str
    network: str
    """The peered network or the attachment; empty without one."""
    images: tuple[str, ...]
    """Distinct images of the worker pools."""
    starts: tuple[str, ...]
    """Nodes and processes that the job's launchers start."""
    cost: JobCost
    offers: tuple[Offer, Offer]
    """Offer of the job's service (its cost equals ``cost``), then offer of the other service."""
    differences: tuple[FieldDifference, ...]
    previous_state: str
    """Last seen state of the deployed job; empty without one."""
    filled_in: tuple[str, ...] = ()
    """Fields from the stack's ``jobDefaults``, like ``serviceAccount``."""
    now: JobObservation | None = None
    """Current state of the deployed job; None if not observed, or without one."""
    cost_before: JobCost | None = None
    """Cost of the replaced job; None without one."""
    strategy_before: str = ""
    """Strategy of the replaced job."""
    ladder: tuple[RungRequest, ...] = ()
    """The rungs, the file's request first; empty without a ladder. ``cost`` is the highest."""
    idle_stop: str = ""
    """Condition of a cancellation because of idle accelerators; empty without one."""
    idle_stop_before: str = ""
    """The condition of ``idle_stop`` before the plan."""
    memory: tuple[str, ...] = ()
    """Predicted peak memory of the job's ``model``, compared with the memory of its GPUs."""
    same_request: bool = False
    """True if the plan replaces the job but its request is the same; ``up`` refuses this."""
    retained: bool = False
    """True if the deployed job stays unchanged (``retain_on_delete`` of a ``TrainingJob``)."""

    repeats: str = ""
    """The earlier job with the same request and output folder; empty if there is none."""
    protected: bool = False
    """True if the engine refuses to delete or replace the job."""

    @property
    def refused(self) -> bool:
        """Return whether `up` refuses to replace or remove the job."""
        return self.protected or self.same_request

    @property
    def submits(self) -> bool:
        """Return whether the plan submits a request to the service."""
        return self.action in ("submit", "replace") and not self.refused

    @property
    def pools(self) -> Sequence[PoolCost]:
        """The pools of the job file's request."""
        return self.ladder[0].cost.pools if self.ladder else self.cost.pools

    @property
    def machines(self) -> tuple[str, ...]:
        """Return the machines by pool, like ``4 x a3-megagpu-8g (8 NVIDIA_H100_MEGA_80GB)``."""
        return self.ladder[0].machines if self.ladder else _machines(self.cost)

    @property
    def machines_before(self) -> tuple[str, ...]:
        """Machines of the replaced job; empty without one."""
        return _machines(self.cost_before) if self.cost_before else ()

    @property
    def trials(self) -> str:
        """Trials of a tuning job, and the quota that they need; empty for other jobs."""
        if self.cost.trials is None:
            return ""
        parallel = self.cost.parallel
        quota = f"{parallel} in parallel, with quota for {parallel} times these machines"
        return f"{self.cost.trials} trials, {quota}"

    @property
    def cancels(self) -> bool:
        """Return whether the plan cancels a job that may still run."""
        return self.leaves_a_live_one and not (self.retained or self.refused)

    @property
    def goes_on(self) -> bool:
        """Return whether a job that may still run leaves the stack without being cancelled."""
        return self.leaves_a_live_one and self.retained and not self.refused

    @property
    def leaves_a_live_one(self) -> bool:
        """Return whether the replaced or removed job may still run."""
        return self.action in ("replace", "cancel") and self._state not in (*ENDED, RECORD_DELETED)

    @property
    def end(self) -> str:
        """Return the state of the deployed job as text: ``has not ended``, or ``is SUCCEEDED``."""
        return "has not ended" if self.leaves_a_live_one else f"is {self._state}"

    @property
    def _state(self) -> str:
        return self.now.state if self.now else self.previous_state


def _machines(cost: JobCost) -> tuple[str, ...]:
    return tuple(
        f"{pool.machines} x {pool.machine_type or 'no machine type'}"
        + (f" ({pool.count} {pool.accelerator})" if pool.accelerator else "")
        for pool in cost.pools
    )


def job_changes(plan: Plan, observed: Observations = NOTHING_OBSERVED) -> list[JobChange]:
    """Return all jobs of the plan by name, including unchanged jobs."""
    steps = [step for step in plan.steps if step.type in JOBS and step.op in ACTIONS]
    subnet = bool(plan.section("network").get("subnet"))
    changes = [_job(step, observed, subnet=subnet) for step in steps]
    return sorted(changes, key=lambda job: job.name)


def request(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the message in a job's inputs; empty while it is unknown."""
    try:
        message = json.loads(inputs["request"])
    except (KeyError, TypeError, json.JSONDecodeError):
        return {}
    return message if isinstance(message, dict) else {}


def job_spec(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return the jobSpec or trialJobSpec of a job's message; empty if it has neither."""
    return message.get(kind_of_fields(message).spec, {})


def _job(step: Step, observed: Observations, *, subnet: bool) -> JobChange:
    inputs = step.inputs
    messages = [request(rung) for rung in rungs(inputs)]
    spec = job_spec(messages[0])
    region, job_options = _region(inputs), as_mapping(inputs.get("options"))
    filled_in = job_options.get("filledIn")
    # Options that only one service supports.
    lacks = next((name for name in (IDLE_STOP, "notifications") if job_options.get(name)), "")
    attachment = spec.get("pscInterfaceConfig", {}).get("networkAttachment", "")
    # An earlier job with the same request, or with a rung's request.
    ids = [str(rung.get("requestId")) for rung in rungs(inputs)]
    repeated = next((observed.repeated[id_] for id_ in ids if id_ in observed.repeated), "")
    state = str(step.old.outputs.get("state") or "") if step.old else ""
    now = observed.jobs.get(step.old.id) if step.old else None
    action = ACTIONS[step.op]
    if step.op in ("update", "same") and step.old and step.new:
        # The job goes on, and an ``up`` after its end submits the new request.
        running = step.old.outputs.get("requestId")
        if running and running != step.new.inputs.get("requestId", running):
            action = "defer"
    exists = action == "submit" and inputs.get("requestId") in observed.adopted
    again = not step.is_protected and step.adopts_again(now.whole_state if now else "")
    if exists or again:
        action = "adopt"
    before = step.old.inputs if step.old and action in ("replace", "defer") else None
    return JobChange(
        name=job_name(step),
        action=action,
        region=region,
        strategy=_strategy(spec),
        reservation=_reservation(spec),
        account=spec.get("serviceAccount", ""),
        network=spec.get("network") or attachment,
        images=images_of(spec),
        starts=started_processes(Job({"jobSpec": spec}).pools),
        cost=_cost(inputs),
        differences=tuple(differences(step)),
        # A report shows the API's spelling without escaping.
        previous_state=state.removeprefix("JOB_STATE_") if _STATE.fullmatch(state) else "",
        filled_in=tuple(sorted(map(str, filled_in))) if isinstance(filled_in, dict) else (),
        now=now,
        cost_before=_cost(before) if before else None,
        strategy_before=_strategy(job_spec(request(before))) if before else "",
        offers=offers(messages, region, backend_of(inputs), subnet=subnet, lacks=lacks),
        ladder=_ladder(inputs),
        idle_stop=_idle_stop(inputs) if step.new else "",
        idle_stop_before=_idle_stop(step.old.inputs) if step.old else "",
        memory=_memory(messages[0], inputs) if step.new else (),
        repeats=repeated.rpartition("/")[2] if action in ("submit", "replace") else "",
        same_request=action == "replace" and step.repeats_request,
        retained=step.old is not None and step.old.retained,
        protected=action in ("replace", "cancel") and step.is_protected,
    )


def moved_services(step: Step, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield jobs and schedules that move from Vertex AI to Batch, or back."""
    if old and new and backend_of(old) != backend_of(new):
        before, after = (SERVICES[backend_of(inputs)] for inputs in (old, new))
        yield Finding(job_name(step), "", before, after)


def same_requests(jobs: Sequence[JobChange]) -> list[Problem]:
    """Return a problem for each job that `up` refuses to replace by an equal request."""
    return [
        Problem(
            f"job {job.name} {job.end} and would be replaced by the same request: `up` refuses, "
            f"and {'cancels' if job.leaves_a_live_one else 'submits'} no job",
            hint=REPEATED_HINT,
            rule=SAME_REQUEST,
        )
        for job in jobs
        if job.same_request
    ]


def repeats_in_words(changes: Sequence[JobChange], quote: Quote) -> list[str]:
    """Return jobs whose request was sent before, with the earlier job that wrote to the folder."""
    return [f"{quote(job.name)} ({quote(job.repeats)})" for job in changes if job.repeats]


def _idle_stop(inputs: Mapping[str, Any]) -> str:
    return str((inputs.get("options") or {}).get(IDLE_STOP) or "")


def _memory(message: Mapping[str, Any], inputs: Mapping[str, Any]) -> tuple[str, ...]:
    pools = Job({"jobSpec": job_spec(message)}).pools
    model = as_mapping(as_mapping(inputs.get("options")).get(MODEL))
    return tuple(dict.fromkeys(text for _, text, _ in memory_comparisons(pools, model)))


def _ladder(inputs: Mapping[str, Any]) -> tuple[RungRequest, ...]:
    ladder = rungs(inputs)
    if len(ladder) == 1:
        return ()
    return tuple(
        RungRequest(
            number,
            str(rung.get("words", "as in the job file")),
            _strategy(job_spec(request(rung))),
            _reservation(job_spec(request(rung))),
            costs.of_job(request(rung), _region(inputs)),
        )
        for number, rung in enumerate(ladder, start=1)
    )


def _cost(inputs: Mapping[str, Any]) -> JobCost:
    messages = [request(rung) for rung in rungs(inputs)]
    return costs.of_dearest(messages, _region(inputs), backend_of(inputs))


def _region(inputs: Mapping[str, Any]) -> str:
    return str(_submission(inputs).get("region", ""))


def backend_of(inputs: Mapping[str, Any]) -> str:
    """Return ``vertex`` or ``batch``: the service that runs a job."""
    return str(_submission(inputs).get("backend", CUSTOM_JOB.backend))


def _strategy(spec: Mapping[str, Any]) -> str:
    return spec.get("scheduling", {}).get("strategy", "STANDARD")


def differences(step: Step) -> list[FieldDifference]:
    """Return the differences of a job: in the request, then in run, labels and options."""
    if step.old is None or step.new is None or not step.changes:
        return []
    places = [_submission(state.inputs) for state in (step.old, step.new)]
    options = [_options(state.inputs) for state in (step.old, step.new)]
    return [
        *diff_fields(_named(step.old.inputs), _named(step.new.inputs)),
        *diff_fields(*places),
        *diff_fields(*options),
    ]


def _options(inputs: Mapping[str, Any]) -> dict[str, Any]:
    options = dict(inputs.get("options") or {})
    if LADDER in options:
        options[LADDER] = [str(rung.get("words", "")) for rung in rungs(inputs)[1:]]
    return options


def job_name(step: Step) -> str:
    """Return a job's name in the stack file."""
    return str(_submission(step.inputs).get("job") or step.name)


def _submission(inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    return inputs.get("submission") or {}


def _named(inputs: Mapping[str, Any]) -> dict[str, Any]:
    text, id_ = str(inputs.get("request")), str(inputs.get("requestId", ""))
    return request({"request": text.replace(id_, "${job.requestId}") if id_ else text})


def _reservation(spec: Mapping[str, Any]) -> str:
    reservations: dict[str, None] = {}
    for pool in spec.get("workerPoolSpecs", ()):
        affinity = pool.get("machineSpec", {}).get("reservationAffinity") or {}
        kind = affinity.get("reservationAffinityType")
        if kind == "SPECIFIC_RESERVATION":
            reservations |= dict.fromkeys(
                value.rpartition("/")[2] for value in affinity.get("values", ())
            )
        elif kind and kind != "NO_RESERVATION":
            reservations[kind] = None
    return ", ".join(reservations)


def images_of(spec: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the distinct images of the worker pools of a spec."""
    images: dict[str, None] = {}
    for pool in spec.get("workerPoolSpecs", ()):
        image = pool.get("containerSpec", {}).get("imageUri")
        image = image or pool.get("pythonPackageSpec", {}).get("executorImageUri")
        if image:
            images[image] = None
    return tuple(images)


def fate(job: JobChange) -> str:
    """Return what the plan does with a job, and what happens to the deployed job."""
    done = {
        "submit": "submitted",
        "adopt": "adopted: already submitted, not sent again",
        "replace": "submitted again",
        "cancel": "removed from the stack",
        "change": "labels or options changed, not submitted",
        "defer": "submitted by the first up after the end of the running job",
        "keep": "unchanged",
    }[job.action]
    if job.action not in ("replace", "cancel"):
        return done
    if job.refused:
        why = "replaced by the same request"
        return f"refused: {f'protected (otherwise {done})' if job.protected else why}"
    deployed = "previous job" if job.action == "replace" else "job"
    if not job.leaves_a_live_one:
        state = progress(job.now) if job.now else job.previous_state.lower()
        return f"{done}; {deployed} {state}"
    seen = f" (last seen {job.previous_state.lower()})" if job.previous_state else ""
    if job.now:
        seen = f" ({progress(job.now)})"
    ends = "cancelled" if job.cancels else "continues outside the stack"
    return f"{done}; {deployed} {ends}{seen}"


def progress(now: JobObservation) -> str:
    """Return the progress of a job: ``running for 3h 2m, $12.30 so far``."""
    words = now.state.lower().replace("_", " ")
    if not now.seconds:
        return words
    verb = "after" if now.state in ENDED else "for"
    text = f"{words} {verb} {format_duration(now.seconds)}"
    text += "" if now.cost is None else f", {usd(now.cost)} so far"
    return f"{text}, {checkpoint(now.checkpoint)}" if now.checkpoint else text


def checkpoint(observation: CheckpointObservation) -> str:
    """Return the age of a job's last checkpoint. A cancellation loses the work since then."""
    if observation.seconds is None:
        return "no checkpoint"
    bound = "at most " if observation.at_most else ""
    return f"last checkpoint {bound}{format_duration(observation.seconds)} ago"


def at_most(job: JobChange) -> tuple[str, str]:
    """Return the maximum cost on the service of the job, then on the other service."""
    here, other = job.offers
    default = ", no timeout set" if job.cost.default_timeout else ""
    own = here.text(f"{default}{job.cost.elsewhere}")
    return own, str(other) if other.refusal else f"or {other}"


def shown_image(name: str) -> str:
    """Return an image without its registry, and with only twelve digits of its digest."""
    short, _, digest = name.rpartition("/")[2].partition("@sha256:")
    return f"{short}@sha256:{digest[:12]}" if digest else short


def image_name(uri: str) -> str:
    """Return an image without registry, tag and digest."""
    return uri.rpartition("/")[2].partition("@")[0].partition(":")[0]
