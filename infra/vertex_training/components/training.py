"""The training jobs: one resource for each entry of ``jobs`` and ``tuning`` in the stack file."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import pulumi

from vertex_training.components.ordering.component_dependencies import component_dependencies
from vertex_training.customjob.kinds import CUSTOM_JOB, TUNING_JOB, JobKind
from vertex_training.customjob.protocol.waiting import Wait, WaitPorts, wait_for_job
from vertex_training.customjob.request.job_file import JobRequest
from vertex_training.customjob.resource import CustomJob, HyperparameterTuningJob
from vertex_training.engine import HOSTED, MESSAGE_SHOWN
from vertex_training.errors import OperatorError
from vertex_training.settings.model import JobOptions

if TYPE_CHECKING:
    from vertex_training.customjob.google.job_service import VertexJobs

#: The resource of each kind of job.
RESOURCES: Final[Mapping[JobKind, type[CustomJob]]] = {
    CUSTOM_JOB: CustomJob,
    TUNING_JOB: HyperparameterTuningJob,
}


class Training(pulumi.ComponentResource):
    """All jobs and tuning jobs of a stack, and the waits for those that ask for one."""

    jobs: dict[str, CustomJob]
    reached: pulumi.Output[bool]
    """Whether all jobs with ``wait`` got where they should; known when they did or did not."""

    def __init__(
        self,
        name: str,
        *,
        requests: Mapping[str, JobRequest],
        jobs: Mapping[str, JobOptions],
        labels: Mapping[str, str],
        team_labels: Mapping[str, Mapping[str, str]] | None = None,
        control_bucket: pulumi.Input[str],
        finishes: Callable[[str], bool] = lambda _: False,
        after: Sequence[pulumi.Resource],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """``team_labels``, by job, take the place of ``labels``. ``finishes``: whether a running
        job, by its name, ends by itself when it changes.

        ``after``: everything a job may need; all of it is there first.

        The component waits for it and jobs wait for the component, so that the long list of what
        all that is stands in the state once and not once a job (docs/adr/0013).
        """
        opts = pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(depends_on=after))
        super().__init__("vertextraining:training:Training", name, None, opts)
        dependencies = component_dependencies(after)
        self.jobs = {
            key: RESOURCES[request.kind](
                f"{name}-{key}",
                request=request,
                labels=(team_labels or {}).get(key, labels),
                control_bucket=control_bucket,
                on_delete=jobs[key].on_delete,
                finishes=finishes(key),
                opts=pulumi.ResourceOptions(parent=self, depends_on=dependencies),
            )
            for key, request in requests.items()
        }
        self.register_outputs({})
        self.reached = self._reached(requests, jobs)

    def _reached(
        self, requests: Mapping[str, JobRequest], jobs: Mapping[str, JobOptions]
    ) -> pulumi.Output[bool]:
        """Wait where a job asks for it, all at once, so that ``up`` fails if one is not there.

        Not in an ``after_create`` hook: the engine then holds the step open, so an interrupt is
        not obeyed before the hook ends, a kill leaves a pending operation, and the next ``up``,
        which creates nothing, would be green although the job has failed (docs/adr).
        """
        waiting = {} if pulumi.runtime.is_dry_run() else requests
        outcomes = [
            self._outcome(self.jobs[key], _wanted(key, jobs[key], request), request)
            for key, request in waiting.items()
            if jobs[key].wait
        ]
        # Not before every job was submitted: to end the program ends what it still declares.
        submitted = [job.name for job in self.jobs.values()] if outcomes else []
        everything = pulumi.Output.all(*outcomes, *submitted)
        reached = everything.apply(lambda all_: all(all_[: len(outcomes)]))
        if not HOSTED.get():
            reached.apply(_end_unless)
        return reached

    def _outcome(self, job: CustomJob, wanted: Wait, request: JobRequest) -> pulumi.Output[bool]:
        """Whether the job got where it should; why not has been shown.

        At the program, which fails; at the job, the engine would call its creation failed.
        """

        async def reached(name: str) -> bool:
            ports = _wait_ports(request, lambda text: pulumi.log.info(text, job))
            try:
                await wait_for_job(wanted, name, ports)
            except OperatorError as error:
                pulumi.log.error(str(error))
                return False
            return True

        return job.name.apply(reached)


def _wanted(key: str, job: JobOptions, request: JobRequest) -> Wait:
    return Wait(key, request.submission.run, job.wait or "succeeded", job.deadline_seconds)


def _wait_ports(request: JobRequest, say: Callable[[str], None]) -> WaitPorts:
    """The I/O of a wait: the official clients, loaded in its threads when first needed."""
    project, region, kind = request.submission.project, request.submission.region, request.kind

    @functools.cache
    def service() -> VertexJobs:
        from vertex_training.customjob.google import job_service

        return job_service.connect(project, region, kind)

    def tail(name: str, count: int) -> list[str]:
        from vertex_training.customjob.google import logs

        found = logs.connect(project)
        ids = service().log_ids(name)
        return [line.text for each in ids for line in found.tail(each, count)]

    return WaitPorts(lambda name: service().get(name), tail, say)


def _end_unless(reached: bool) -> None:
    """End the program, the errors being shown; one raised here would add a traceback."""
    if not reached:
        sys.exit(MESSAGE_SHOWN)
