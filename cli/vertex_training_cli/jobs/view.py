"""Jobs, and trials of tuning jobs, as table rows and as plain data. Pure functions."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from google.protobuf.json_format import MessageToDict

from vertex_training.customjob import kinds
from vertex_training.customjob.google.job_service import AnyJob, enum_name
from vertex_training.customjob.kinds import BATCH_JOB, TUNING_JOB
from vertex_training.customjob.protocol.idle import Series
from vertex_training.customjob.protocol.ports import (
    JOB_LABEL,
    RUN_LABEL,
    RUNG_LABEL,
    SLOT_LABEL,
    STACK_LABEL,
    TERMINAL,
)
from vertex_training.customjob.protocol.waiting import format_duration
from vertex_training_cli.console import plain
from vertex_training_cli.engine.values import redact
from vertex_training_cli.jobs.service import kind_of, labels_of

#: Columns of ``vt jobs list``. All columns except ``stack`` are also keys of its JSON.
COLUMNS: Final = ("job", "stack", "run", "slot", "rung", "state", "created", "duration", "id")
#: Period for which ``vt jobs show`` shows the use of accelerators, in minutes.
USE_MINUTES: Final = 30
#: Columns that are omitted if no job has a value.
OPTIONAL: Final = ("stack", "slot", "rung")


def job_id(job: AnyJob) -> str:
    """Return the number at the end of the job's resource name."""
    return job.name.rpartition("/")[2]


def is_tuning(job: AnyJob) -> bool:
    """Return True for a tuning job, which has trials."""
    return kind_of(job) is TUNING_JOB


def spec_of(job: Any) -> Any:
    """Return the CustomJobSpec of a job, or of each trial of a tuning job."""
    return job.trial_job_spec if is_tuning(job) else job.job_spec


def title(job: AnyJob) -> str:
    """Return the job's name in the stack, else its display name."""
    return labels_of(job).get(JOB_LABEL) or plain(redact(job.display_name))


def stack(job: AnyJob) -> str:
    """Return the job's stack; empty for a job that no stack submitted."""
    return labels_of(job).get(STACK_LABEL, "")


def run(job: AnyJob) -> str:
    """Return the job's run; empty for a job that no stack submitted."""
    return labels_of(job).get(RUN_LABEL, "")


def run_texts(jobs: Sequence[AnyJob]) -> dict[str, str]:
    """Return each job's run by its resource name. Repeated submissions are numbered: ``1 #2``."""
    texts, counts = dict[str, str](), Counter[tuple[str, ...]]()
    for job in sorted(jobs, key=lambda entry: type(entry).pb(entry).create_time.ToNanoseconds()):
        # Projects may have stacks of the same name.
        slot = labels_of(job).get(SLOT_LABEL, "")
        key = job.name.split("/")[1], stack(job), title(job), run(job), slot
        counts[key] += 1
        more = counts[key] > 1 and run(job)
        texts[job.name] = f"{run(job)} #{counts[key]}" if more else run(job)
    return texts


def state(job: AnyJob) -> str:
    """Return the job's state without the API's prefix, like ``RUNNING``."""
    return enum_name(job.state).removeprefix("JOB_STATE_")


def has_ended(job: AnyJob) -> bool:
    """Return True if the job's state is final."""
    return enum_name(job.state) in TERMINAL


def row(job: AnyJob, now: datetime) -> dict[str, str]:
    """Return the cells of a job in the list of jobs: ``slot`` and ``rung`` only with a value."""
    own = (("slot", SLOT_LABEL), ("rung", RUNG_LABEL))
    labels = labels_of(job)
    return {
        "job": title(job),
        "run": run(job),
        **{key: labels[label] for key, label in own if labels.get(label)},
        "state": state(job),
        "created": _time(job.create_time),
        "duration": _duration(job, now),
        "id": job_id(job),
    }


def list_entry(job: AnyJob, now: datetime) -> dict[str, Any]:
    """Return the JSON of a job in the list of jobs."""
    data = {**row(job, now), "name": job.name, "displayName": job.display_name}
    data["section"] = kind_of(job).section
    return redact({**data, "labels": dict(job.labels), "error": job.error.message})


def facts(job: AnyJob, project: str, region: str, now: datetime) -> list[tuple[str, str]]:
    """Return the rows of ``vt jobs show``, the most important first."""
    console_url, logs_url = kinds.console_urls(project, region, job_id(job), kind_of(job))
    spec, pools, cells = spec_of(job), list[str](), row(job, now)
    for pool in spec.worker_pool_specs:
        machine = pool.machine_spec
        gpus = f"{machine.accelerator_count} x {enum_name(machine.accelerator_type)}"
        with_gpus = f" with {gpus}" if machine.accelerator_count else ""
        pools.append(f"{pool.replica_count} x {machine.machine_type}{with_gpus}")
    rows = [
        ("state", cells["state"]),
        ("error", job.error.message),
        *((key, cells.get(key, "")) for key in ("run", "slot", "rung")),
        ("name", job.name),
        ("created", cells["created"]),
        ("started", _time(job.start_time)),
        ("ended", _time(job.end_time)),
        ("duration", cells["duration"]),
        ("trials", trial_summary(message(job)) if is_tuning(job) else ""),
        *(("worker pool", text) for text in pools),
        ("account", spec.service_account),
        ("artifacts", spec.base_output_directory.output_uri_prefix),
        ("labels", " ".join(f"{key}={value}" for key, value in sorted(job.labels.items()))),
        ("console", console_url),
        ("logs", logs_url),
    ]
    return [(key, redact(value)) for key, value in rows if value]


def message(job: AnyJob) -> dict[str, Any]:
    """Return the complete message in REST form, with likely secrets redacted."""
    return redact(MessageToDict(type(job).pb(job)))


def replicas(job: AnyJob) -> list[str]:
    """Return the names of the job's replicas in logs: ``workerpool0-0``; on Batch ``task-0``."""
    pools: Sequence[Any] = spec_of(job).worker_pool_specs
    if kind_of(job) is BATCH_JOB:
        return [f"task-{number}" for number in range(sum(pool.replica_count for pool in pools))]
    return [
        f"workerpool{number}-{replica}"
        for number, pool in enumerate(pools)
        for replica in range(pool.replica_count)
    ]


def has_accelerators(job: AnyJob) -> bool:
    """Return True if a machine of the job has GPUs."""
    return any(pool.machine_spec.accelerator_count for pool in spec_of(job).worker_pool_specs)


def accelerator_use(series: Sequence[Series]) -> dict[str, Any]:
    """Return the mean and highest use of the job's accelerators, from 0 to 1; None without data."""
    values = [value for one in series for _, value in one.points if math.isfinite(value)]
    mean = round(math.fsum(values) / len(values), 4) if values else None
    highest = max(values, default=None)
    return {"minutes": USE_MINUTES, "series": len(series), "mean": mean, "max": highest}


def use_text(use: Mapping[str, Any]) -> str:
    """Return a line about the use of a job's accelerators, or about the error of the request."""
    if "error" in use:
        return f"the use of accelerators is unknown: {use['error']}"
    if use["mean"] is None:
        return f"no data on the use of accelerators in the last {use['minutes']} minutes"
    text = f"{use['mean']:.1%} in use on average, {use['max']:.1%} at most"
    return f"{text}, in the last {use['minutes']} minutes ({use['series']} series)"


def _time(value: Any) -> str:
    return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S") if value else ""


def _duration(job: AnyJob, now: datetime) -> str:
    began: Any = job.start_time
    ended_at: Any = job.end_time or now
    return format_duration((ended_at - began).total_seconds()) if began else ""


#: States of an ended trial.
TRIAL_OVER: Final = ("SUCCEEDED", "INFEASIBLE")


@dataclass(frozen=True, slots=True)
class Trial:
    """A trial, parsed from the REST message of its tuning job."""

    id: str
    state: str
    parameters: Mapping[str, Any]
    metrics: Mapping[str, float]
    """Metrics of the final measurement; empty before it exists."""
    job: str
    """Id of the CustomJob that runs the trial; empty before it exists."""

    @property
    def number(self) -> int:
        """Return the trial's id as a number; 0 if it is not a number."""
        return int(self.id) if self.id.isdecimal() else 0


def trials_of(message: Mapping[str, Any]) -> list[Trial]:
    """Return the trials of a tuning job, best first. Trials without a result come last."""
    trials = [_trial(trial) for trial in message.get("trials", [])]
    metrics = message.get("studySpec", {}).get("metrics", [])
    objective = next((metric for metric in metrics if "safetyConfig" not in metric), {})
    metric, sign = objective.get("metricId", ""), 1 if objective.get("goal") == "MINIMIZE" else -1
    return sorted(
        trials,
        key=lambda trial: (
            metric not in trial.metrics,
            sign * trial.metrics.get(metric, 0.0),
            trial.number,
        ),
    )


def trial_summary(message: Mapping[str, Any]) -> str:
    """Return the number of trials by state: ``7 of 12, 3 at once: 4 SUCCEEDED, 3 ACTIVE``."""
    states = Counter(_trial_state(trial) for trial in message.get("trials", []))
    counts = ", ".join(f"{number} {state}" for state, number in sorted(states.items()))
    text = f"{sum(states.values())} of {message.get('maxTrialCount', 0)}"
    text += f", {message.get('parallelTrialCount', 0)} at once"
    return f"{text}: {counts}" if counts else text


def trial_table(message: Mapping[str, Any]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return the header and the rows: trial, state, metrics, parameters, CustomJob id."""
    trials = trials_of(message)
    metrics = _names(trial.metrics for trial in trials)
    parameters = _names(trial.parameters for trial in trials)
    heads = ("TRIAL", "STATE", *metrics, *parameters, "id")
    rows = [
        (
            trial.id,
            trial.state,
            *(shown(trial.metrics.get(name)) for name in metrics),
            *(shown(trial.parameters.get(name)) for name in parameters),
            trial.job,
        )
        for trial in trials
    ]
    return heads, rows


def _trial(message: Mapping[str, Any]) -> Trial:
    measured = message.get("finalMeasurement", {}).get("metrics", [])
    return Trial(
        id=str(message.get("id", "")),
        state=_trial_state(message),
        parameters={
            p.get("parameterId", ""): p.get("value") for p in message.get("parameters", [])
        },
        metrics={m.get("metricId", ""): float(m.get("value", 0.0)) for m in measured},
        job=str(message.get("customJob", "")).rpartition("/")[2],
    )


def _trial_state(message: Mapping[str, Any]) -> str:
    return str(message.get("state", "")).removeprefix("STATE_")


def _names(of: Any) -> list[str]:
    return list(dict.fromkeys(name for mapping in of for name in mapping))


def shown(value: Any) -> str:
    """Return a value as text, like 0.817259, 32 or adam; empty for None."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"{value:.6g}"
    return "" if value is None else str(value)
