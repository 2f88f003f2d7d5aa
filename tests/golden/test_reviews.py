"""Scripted changes to one stack, reviewed: real engine, real state, the report as committed.

The reports are regenerated with UPDATE_GOLDEN=1; read the difference before committing it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import Checkout, copy_checkout
from tests.golden.changes import JOB, LIVE, STACK, Change, edited

REPORTS = Path(__file__).parent / "reviews"
HINT = "If this is what you meant: UPDATE_GOLDEN=1 pytest tests/golden/test_reviews.py"
#: A job that runs until it is cancelled, so that every review finds it running.
#: Its arguments are for a program that reads them: ``$0`` is the first of them.
LONG_JOB = JOB.replace('command: ["true"]', 'command: [sh, -c, "sleep 3600; echo $0"]')
#: Changes that ``make test`` reviews at every commit; the others every night.
EVERY_COMMIT = ("job-reads-bucket",)
pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checkout]:
    """The stack as it is before each change, up and running."""
    copy = copy_checkout(tmp_path_factory.mktemp("reviews"))
    write(copy, Change())
    copy.run("vt", "local", "up", "--no-wait")
    yield copy
    copy.run("vt", "local", "down", "--clean")


def write(checkout: Checkout, change: Change) -> None:
    """Write the files as the change has them."""
    for name, text, edits in (
        ("Pulumi.local.yaml", STACK, change.stack),
        ("jobs/train.yaml", LONG_JOB, change.job),
        ("jobs/check.yaml", LONG_JOB, ()),
    ):
        (checkout.path / name).write_text(edited(text, edits))


def review(checkout: Checkout, change: Change, *flags: str) -> str:
    write(checkout, change)
    command = ("vt", "review", "--stack", "local", *change.flags, *flags)
    return checkout.run(*command, expect=change.exit_code).stdout


def readable(report: str) -> str:
    """What differs from run to run as a word: digests, and how far the local jobs have come."""
    report = re.sub(r"; (previous job|job) [^|]*\|", r"; \1 … |", report)
    report = re.sub(r"; \d+ running jobs? cancelled after .*? so far\)", "", report)
    states = "queued|pending|running|succeeded|failed|cancelling|cancelled"
    lines = rf"(?:^- `[\w-]+`: (?:{states})\b.*\n)+\n"
    report = re.sub(lines, "", report, flags=re.MULTILINE)
    stops = r"(?<=\| Stopped jobs \| )(.*)(?= \|)"
    so_far = r" \(current state unknown\)| after [^;|]* so far"
    report = re.sub(stops, lambda found: re.sub(so_far, "", found[1]), report)
    return without_digests(report)


def without_digests(report: str) -> str:
    """Digests as a word: they change with every line of a program."""
    report = re.sub(r"(?<=Approval \| `)[0-9a-f]{12}", "(digest)", report)
    return re.sub(r"\b[0-9a-f]{16,64}\b", "(digest)", report)


def digest_in(report: str) -> str:
    [digest] = re.findall(r"Plan `([0-9a-f]{64})`", report)
    return digest


@pytest.fixture(scope="module")
def approved() -> dict[str, str]:
    """Digests of the plans reviewed so far: a review costs seconds."""
    return {}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in EVERY_COMMIT else pytest.mark.nightly)
        for name in LIVE
    ],
)
def test_a_change_is_reported_as_committed(
    stack: Checkout, approved: dict[str, str], name: str
) -> None:
    told, file = review(stack, LIVE[name]), REPORTS / f"{name}.md"
    approved[name] = digest_in(told)
    if os.environ.get("UPDATE_GOLDEN"):
        file.write_text(readable(told))
    assert readable(told) == file.read_text(), HINT


def test_a_job_a_read_and_a_bucket_are_all_that_is_named() -> None:
    told = (REPORTS / "job-reads-bucket.md").read_text()
    assert "**1 job replaced; at most $0.22; 1 grant gained, 0 lost; nothing destroyed.**" in told
    everything_else = told[told.index("Other changes") : told.index("The stack after")]
    assert "1 updated;" in everything_else
    assert re.findall(r"^- \w+ `([^`]+)`", everything_else, re.MULTILINE) == ["storage-artifacts"]
    assert "`--epochs=10` → `--epochs=20`" in told
    assert re.findall(r"\| gained \|.*", told) == [
        line
        for line in told[told.index("### Grants") :].splitlines()
        if "local-training-raw-local` |" in line
    ]


def test_rights_on_what_does_not_exist_yet_name_it() -> None:
    told = (REPORTS / "account-and-secret.md").read_text()
    assert "account `tuner-local@local-training.iam.gserviceaccount.com`" in told
    assert "secret `api-key-local`" in told
    assert "new (grant" not in told


def test_a_plan_made_again_has_the_digest_it_was_approved_with(
    stack: Checkout, approved: dict[str, str]
) -> None:
    change = LIVE["removal"]
    digest = approved.get("removal") or digest_in(review(stack, change))
    assert digest in review(stack, change, "--expect", digest)
