"""Tests components in programs that a process runs repeatedly: Pulumi's Automation API."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pulumi
import pulumi_gcp as gcp
import pytest
from pulumi import automation

from tests.e2e.inline_programs import REGION, InlinePrograms
from vertex_training import TrainingBuckets

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

PLACE = {"project": "local-inline", "region": REGION}


def declare() -> None:
    """Declare three buckets, whose names end with the stack's name."""
    TrainingBuckets("store", {**PLACE, "buckets": {"data": {}}})


def test_one_process_previews_and_updates_a_stack_repeatedly(programs: InlinePrograms) -> None:
    stack = programs.stack(declare)
    assert stack.preview().change_summary == stack.preview().change_summary == {"create": 8}
    assert stack.up().summary.resource_changes == {"create": 8}
    assert stack.up().summary.resource_changes == {"same": 8}
    # Neither the program nor a stack file gives the provider a project.
    assert stack.refresh().summary.resource_changes == {"same": 8}
    assert stack.up(refresh=True).summary.resource_changes == {"same": 8}
    assert stack.destroy().summary.resource_changes == {"delete": 8}
    assert programs.checkout.left("local-inline") == {}


def test_one_process_updates_two_stacks_in_parallel(programs: InlinePrograms) -> None:
    stacks = [programs.stack(declare, name) for name in ("one", "two")]
    assert [made.up().summary.resource_changes for made in stacks] == [{"create": 8}] * 2
    with ThreadPoolExecutor(2) as pool:
        again = list(pool.map(lambda each: each.up().summary.resource_changes, stacks))
        assert again == [{"same": 8}] * 2
        gone = list(pool.map(lambda each: each.destroy().summary.resource_changes, stacks))
        assert gone == [{"delete": 8}] * 2


def test_one_program_still_declares_a_bucket_once(programs: InlinePrograms) -> None:
    def twice() -> None:
        declare()
        TrainingBuckets("again", PLACE)

    stack = programs.stack(twice, "twice")
    for _ in range(2):
        with pytest.raises(automation.CommandError) as refused:
            stack.preview()
        assert "'store' declares bucket local-inline-control-twice" in str(refused.value)
        assert "Traceback" not in str(refused.value)


def test_program_ends_if_its_arguments_are_invalid(programs: InlinePrograms) -> None:
    ended = threading.Event()

    def declare_after_a_failure() -> None:
        try:
            # No API is on yet.
            made = gcp.storage.Bucket("early", project="local-early", location=REGION)
            known = (
                {} if pulumi.runtime.is_dry_run() else {"of": made.self_link.apply(lambda _: "x")}
            )
            TrainingBuckets("store", {**PLACE, "labels": known})
        finally:
            ended.set()

    with pytest.raises(automation.CommandError, match="has not been used"):
        programs.stack(declare_after_a_failure, "early").up()
    assert ended.wait(30)
