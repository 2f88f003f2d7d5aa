"""``CustomJob``: what the program declares for one training job."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict

import pulumi
from pulumi import dynamic

from infra.customjob.google import console as links
from infra.customjob.provider import CustomJobProvider
from infra.customjob.request.job_file import JobRequest

#: Frames from where the SDK (3.272.0) looks at the stack up to our constructor, which it takes for
#: the place a resource is declared at. With fewer, state would not say where that is.
_FRAMES = 6


class CustomJob(dynamic.Resource, module="vertex", name="CustomJob"):
    """One submission of a training job on Vertex AI.

    Replaced when its request changes, and then deleted before it is created anew: the option
    stands on the resource because ``--replace`` and taint skip the provider's ``diff``, and
    would otherwise adopt the running job and cancel it right after.
    """

    # Without annotation, since those are outputs. Only tests that cannot wait have another.
    PROVIDER = CustomJobProvider

    state: pulumi.Output[str]
    """State when last looked at; ``pulumi refresh`` looks again."""
    requestId: pulumi.Output[str]

    def __init__(
        self,
        resource_name: str,
        *,
        request: JobRequest,
        labels: Mapping[str, str],
        control_bucket: str,
        on_delete: str,
        opts: pulumi.ResourceOptions,
    ) -> None:
        """``labels`` are the stack's; they never make a job another one.

        ``control_bucket`` holds the record that makes the submission happen once.
        ``on_delete`` is ``keep`` or ``delete``: what becomes of the record of the ended job.
        """
        submission = request.submission
        # Few: the SDK makes an output of each and looks at all of them whenever a resource is done,
        # and the engine lists what each was made from (docs/adr/0014).
        inputs = {
            "submission": asdict(submission),
            "requestId": request.request_id,
            "request": request.body,
            "options": {
                "labels": dict(labels),
                "controlBucket": control_bucket,
                "onDelete": on_delete,
            },
        }
        opts = pulumi.ResourceOptions.merge(
            opts, pulumi.ResourceOptions(delete_before_replace=True)
        )
        with _short_stack_trace():
            super().__init__(self.PROVIDER(), resource_name, {**inputs, "state": None}, opts)
        self._place = (submission.project, submission.region)

    # Made of what state keeps anyway, and therefore no outputs of the provider.

    @property
    def name(self) -> pulumi.Output[str]:
        """Resource name: ``projects/NUMBER/locations/REGION/customJobs/ID``."""
        return self.id

    @property
    def console_url(self) -> pulumi.Output[str]:
        """Where a person looks at the job."""
        return self.id.apply(lambda name: links.of_job(*self._place, _number(name))[0])

    @property
    def log_url(self) -> pulumi.Output[str]:
        """Where a person reads the job's log."""
        return self.id.apply(lambda name: links.of_job(*self._place, _number(name))[1])


@contextmanager
def _short_stack_trace() -> Iterator[None]:
    """Let state keep the place a job is declared at, without the 15 frames that lead there.

    The SDK gives every resource a stack trace, over 1 kB a job, and has no option for it. It takes
    it with ``traceback.extract_stack()``, which obeys ``sys.tracebacklimit``.
    """
    before = getattr(sys, "tracebacklimit", None)
    sys.tracebacklimit = _FRAMES
    try:
        yield
    finally:
        if before is None:
            del sys.tracebacklimit
        else:
            sys.tracebacklimit = before


def _number(name: str) -> str:
    return name.rpartition("/")[2]
