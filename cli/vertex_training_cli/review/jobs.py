"""Jobs of a plan: actions, machines and maximum costs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from vertex_training.catalog import costs
from vertex_training.catalog.costs import JobCost, PoolCost, usd
from vertex_training.customjob.kinds import CUSTOM_JOB, kind_of_fields
from vertex_training.customjob.protocol.ports import IDLE_STOP, LADDER, MODEL, RECORD_DELETED
from vertex_training.customjob.protocol.waiting import format_duration
from vertex_training.customjob.rules.batch import NAMES as SERVICES
from vertex_training.customjob.rules.batch import Offer, offers
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
    ResourceState,
    Step,
    rungs,
)
from vertex_training_cli.engine.values import FieldDifference, as_mapping, diff_fields
from vertex_training_cli.review.parts import Finding, Quote

Action = Literal["submit", "adopt", "replace", "cancel", "change", "defer", "keep"]
#: Step -> action on the job. An update changes only labels and options, and submits nothing.
ACTIONS: Final[Mapping[str, Action]] = {
    "create": "submit",
    "replace": "replace",
    "create-replacement": "submit",
    "delete": "cancel",
    "delete-replaced": "cancel",
    "update": "change",
    "same": "keep",
}
#: Rule id of the problem for a job that an equal request would replace.
SAME_REQUEST: Final = "job-same-request"
_STATE: Final = re.compile(r"[A-Z_]{1,60}")
#: Final states of jobs: google-cloud-aiplatform 2.7.0, types/job_state.py.
ENDED: Final = ("SUCCEEDED", "FAILED", "CANCELLED", "EXPIRED", "PARTIALLY_SUCCEEDED")


@dataclass(frozen=True, slots=True)
class RungRequest:
    """One rung of a job's ladder. Only one rung runs at a time."""

    number: int
    what: str
    strategy: str
    reservation: str
    cost: JobCost

    def __str__(self) -> str:
        """Return machines, strategy and maximum cost in a line."""
        parts = (*_machines(self.cost), self.strategy, self.reservation)
        price = f"at most {usd(self.cost.worst_case)}{self.cost.elsewhere}"
        return ", ".join([*(part for part in parts if part), price])


@dataclass(frozen=True, slots=True)
class JobChange:
    """The change of one job, with its properties after the plan, or before a removal."""

    name: str
    action: Action
    region: str
    strategy: str
    reservation: str
    """Names of reservations, or the kind of affinity; empty without a reservation."""
    account: str
    network: str
    """The peered network or the network attachment; empty without a network."""
    images: tuple[str, ...]
    starts: tuple[str, ...]
    """Nodes and processes that the job's launchers start."""
    cost: JobCost
    offers: tuple[Offer, Offer]
    """Cost on the job's service, which equals ``cost``, and cost on the other service."""
    differences: tuple[FieldDifference, ...]
    previous_state: str
    """Last known state of the deployed job; empty without a deployed job."""
    filled_in: tuple[str, ...] = ()
    """Fields from the stack's ``jobDefaults``, like ``serviceAccount``."""
    now: JobObservation | None = None
    """Current state of the deployed job; None if it was not observed."""
    cost_before: JobCost | None = None
    strategy_before: str = ""
    ladder: tuple[RungRequest, ...] = ()
    """The rungs, beginning with the job file's request; ``cost`` is that of the most expensive."""
    idle_stop: str = ""
    """Condition for the cancellation of a job with idle accelerators; empty if never."""
    idle_stop_before: str = ""
    memory: tuple[str, ...] = ()
    """Texts that compare the predicted peak memory of ``model`` with the memory of the GPUs."""
    same_request: bool = False
    """True if the plan replaces the job by an equal request, which ``up`` refuses."""
    retained: bool = False
    """True if the deployed job stays unchanged (``retain_on_delete`` of a ``TrainingJob``)."""

    repeats: str = ""
    """Name of an earlier job of this request, whose output folder the job uses; empty if none."""
    protected: bool = False

    @property
    def refused(self) -> bool:
        """Return True if `up` refuses to replace or remove the job."""
        return self.protected or self.same_request

    @property
    def submits(self) -> bool:
        """Return True if the plan submits a request to the service."""
        return self.action in ("submit", "replace") and not self.refused

    @property
    def pools(self) -> Sequence[PoolCost]:
        """Return the worker pools of the job file's request."""
        return self.ladder[0].cost.pools if self.ladder else self.cost.pools

    @property
    def machines(self) -> tuple[str, ...]:
        """Return the machines by pool, like ``4 x a3-megagpu-8g (8 NVIDIA_H100_MEGA_80GB)``."""
        return _machines(self.ladder[0].cost if self.ladder else self.cost)

    @property
    def machines_before(self) -> tuple[str, ...]:
        """Return the machines of the replaced job; empty if no job is replaced."""
        return _machines(self.cost_before) if self.cost_before else ()

    @property
    def trials(self) -> str:
        """Return the trials of a tuning job, and their quota, as text; empty for other jobs."""
        if self.cost.trials is None:
            return ""
        parallel = self.cost.parallel
        quota = f"{parallel} in parallel, which need quota for {parallel} times these machines"
        return f"{self.cost.trials} trials, {quota}"

    @property
    def cancels(self) -> bool:
        """Return True if the plan cancels a job that may still run."""
        return self.affects_live_job and not (self.retained or self.refused)

    @property
    def continues(self) -> bool:
        """Return True if the plan removes a job from the stack that may continue to run."""
        return self.affects_live_job and self.retained and not self.refused

    @property
    def affects_live_job(self) -> bool:
        """Return True if the replaced or removed job may still run."""
        return self.action in ("replace", "cancel") and self.state not in (*ENDED, RECORD_DELETED)

    @property
    def state(self) -> str:
        """Return the last known state of the deployed job."""
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
    """Return the request in a job's inputs; empty if it is not known yet."""
    try:
        message = json.loads(inputs["request"])
    except (KeyError, TypeError, json.JSONDecodeError):
        return {}
    return message if isinstance(message, dict) else {}


def job_spec(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return the jobSpec or trialJobSpec of a request; empty without either."""
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
        # The job continues. The first ``up`` after its end submits the new request.
        running = step.old.outputs.get("requestId")
        if running and running != step.new.inputs.get("requestId", running):
            action = "defer"
    exists = action == "submit" and inputs.get("requestId") in observed.adopted
    again = not step.is_protected and step.adopts_again(now.whole_state if now else "")
    if exists or again:
        action = "adopt"
    before = step.old.inputs if step.old and action in ("replace", "defer") else None
    pools = Job({"jobSpec": spec}).pools
    memory = (e[1] for e in memory_comparisons(pools, as_mapping(job_options.get(MODEL))))
    return JobChange(
        name=job_name(step),
        action=action,
        region=region,
        strategy=_strategy(spec),
        reservation=_reservation(spec),
        account=spec.get("serviceAccount", ""),
        network=spec.get("network") or attachment,
        images=images_of(spec),
        starts=started_processes(pools),
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
        idle_stop=str(_options(step.new).get(IDLE_STOP) or ""),
        idle_stop_before=str(_options(step.old).get(IDLE_STOP) or ""),
        memory=tuple(dict.fromkeys(memory)) if step.new else (),
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
            f"job {job.name} {'has not ended' if job.affects_live_job else f'is {job.state}'}, "
            "and `up` refuses to replace the job by the same request",
            hint=REPEATED_HINT,
            rule=SAME_REQUEST,
        )
        for job in jobs
        if job.same_request
    ]


def repeats_in_words(changes: Sequence[JobChange], quote: Quote) -> list[str]:
    """Return jobs whose request was sent before, each with the earlier job of the request."""
    return [f"{quote(job.name)} ({quote(job.repeats)})" for job in changes if job.repeats]


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
    """Return ``vertex`` or ``batch``, the service that runs a job."""
    return str(_submission(inputs).get("backend", CUSTOM_JOB.backend))


def _strategy(spec: Mapping[str, Any]) -> str:
    return spec.get("scheduling", {}).get("strategy", "STANDARD")


def differences(step: Step) -> list[FieldDifference]:
    """Return the differences of a job: of its request, its run, and its labels and options."""
    if step.old is None or step.new is None or not step.changes:
        return []
    requests = (_with_reference(state.inputs) for state in (step.old, step.new))
    places = (_submission(state.inputs) for state in (step.old, step.new))
    options = map(_options, (step.old, step.new))
    return [*diff_fields(*requests), *diff_fields(*places), *diff_fields(*options)]


def _with_reference(inputs: Mapping[str, Any]) -> dict[str, Any]:
    text, id_ = str(inputs.get("request")), str(inputs.get("requestId", ""))
    return request({"request": text.replace(id_, "${job.requestId}") if id_ else text})


def _options(state: ResourceState | None) -> dict[str, Any]:
    options = dict(state.inputs.get("options") or {}) if state else {}
    if state and LADDER in options:
        options[LADDER] = [str(rung.get("words", "")) for rung in rungs(state.inputs)[1:]]
    return options


def job_name(step: Step) -> str:
    """Return the name of a job in the stack file."""
    return str(_submission(step.inputs).get("job") or step.name)


def _submission(inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    return inputs.get("submission") or {}


def _reservation(spec: Mapping[str, Any]) -> str:
    reservations: list[str] = []
    for pool in spec.get("workerPoolSpecs", ()):
        affinity = pool.get("machineSpec", {}).get("reservationAffinity") or {}
        kind = affinity.get("reservationAffinityType")
        if kind == "SPECIFIC_RESERVATION":
            reservations += [value.rpartition("/")[2] for value in affinity.get("values", ())]
        elif kind and kind != "NO_RESERVATION":
            reservations.append(kind)
    return ", ".join(dict.fromkeys(reservations))


def images_of(spec: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the distinct images of the worker pools of a spec."""
    pools = spec.get("workerPoolSpecs", ())
    images = (
        pool.get("containerSpec", {}).get("imageUri")
        or pool.get("pythonPackageSpec", {}).get("executorImageUri")
        for pool in pools
    )
    return tuple(dict.fromkeys(filter(None, images)))


def fate(job: JobChange) -> str:
    """Return the action of the plan on a job, and the effect on the deployed job."""
    done = {
        "submit": "submitted",
        "adopt": "adopted, because the request was already submitted",
        "replace": "new job submitted",
        "cancel": "removed from the stack",
        "change": "labels or options changed, without a submission",
        "defer": "submitted by the first `up` after the end of the running job",
        "keep": "unchanged",
    }[job.action]
    if job.action not in ("replace", "cancel"):
        return done
    if job.refused:
        verb = "replace" if job.action == "replace" else "remove"
        why = "the job is protected" if job.protected else "the new request equals the old request"
        return f"not changed: `up` refuses to {verb} the job, because {why}"
    deployed = "previous job" if job.action == "replace" else "job"
    if not job.affects_live_job:
        state = progress(job.now) if job.now else job.previous_state.lower()
        return f"{done}; {deployed} {state}"
    state = f" (last known state: {job.previous_state.lower()})" if job.previous_state else ""
    if job.now:
        state = f" ({progress(job.now)})"
    ends = "cancelled" if job.cancels else "continues outside the stack"
    return f"{done}; {deployed} {ends}{state}"


def progress(now: JobObservation) -> str:
    """Return the progress of a job as text: ``running for 3h 2m, $12.30 so far``."""
    words = now.state.lower().replace("_", " ")
    if not now.seconds:
        return words
    verb = "after" if now.state in ENDED else "for"
    text = f"{words} {verb} {format_duration(now.seconds)}"
    text += "" if now.cost is None else f", {usd(now.cost)} so far"
    return f"{text}, {_checkpoint(now.checkpoint)}" if now.checkpoint else text


def _checkpoint(observation: CheckpointObservation) -> str:
    if observation.seconds is None:
        return "no checkpoint"
    bound = "at most " if observation.at_most else ""
    return f"last checkpoint {bound}{format_duration(observation.seconds)} ago"


def at_most(job: JobChange) -> tuple[str, str]:
    """Return the maximum cost on the job's service, and on the other service."""
    here, other = job.offers
    default = ", no timeout set" if job.cost.default_timeout else ""
    own = here.text(f"{default}{job.cost.elsewhere}")
    return own, str(other) if other.refusal else f"or {other}"


def shown_image(name: str) -> str:
    """Return an image without its registry, with the first twelve digits of its digest."""
    short, _, digest = name.rpartition("/")[2].partition("@sha256:")
    return f"{short}@sha256:{digest[:12]}" if digest else short


def image_name(uri: str) -> str:
    """Return the name of an image without registry, tag and digest."""
    return uri.rpartition("/")[2].partition("@")[0].partition(":")[0]
