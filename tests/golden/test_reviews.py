"""Seven scripted changes to one stack, reviewed: real engine, real state, the report as committed.

The reports are regenerated with UPDATE_GOLDEN=1; read the difference before committing it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import Checkout, copy_checkout

REPORTS = Path(__file__).parent / "reviews"
HINT = "If this is what you meant: UPDATE_GOLDEN=1 pytest tests/golden/test_reviews.py"
pytestmark = pytest.mark.timeout(600)

STACK = """\
config:
  gcp:project: local-training
  gcp:region: us-central1
  vertex-training:projectNumber: "971240389164"
  vertex-training:submitters: ["group:ml-engineers@example.com"]
  vertex-training:buckets:
    data: {forceDestroy: true}
    raw: {forceDestroy: true}
    artifacts: {forceDestroy: true, keepNoncurrentDays: 7}
  vertex-training:serviceAccounts:
    trainer: {reads: [data], writes: [artifacts]}
  vertex-training:jobs:
    train: {file: jobs/train.yaml}
    check: {file: jobs/check.yaml}
"""
JOB = """\
serviceAccount: ${serviceAccounts.trainer}
baseOutputDirectory:
  outputUriPrefix: ${buckets.artifacts}/${job.name}/${job.requestId}
scheduling: {timeout: 3600s}
workerPoolSpecs:
  - machineSpec: {machineType: n1-standard-4}
    replicaCount: 1
    containerSpec:
      imageUri: IMAGE
      command: ["true"]
      args: ["--epochs=10"]
""".replace("IMAGE", f"docker.io/acme/trainer@sha256:{'a' * 64}")


@dataclass(frozen=True)
class Change:
    """A change to the stack, and what a review of it ends with."""

    stack: tuple[tuple[str, str], ...] = ()
    """(what is written, what is written instead) in the stack file."""
    job: tuple[tuple[str, str], ...] = ()
    """The same in the file of job ``train``."""
    exit_code: int = 0
    flags: tuple[str, ...] = ()


def machine(name: str, accelerator: str, count: int) -> tuple[str, str]:
    """Another machine for the job."""
    spec = f"{{machineType: {name}, acceleratorType: {accelerator}, acceleratorCount: {count}}}"
    return "{machineType: n1-standard-4}", spec


CHANGES = {
    "job-reads-bucket": Change(
        stack=(("reads: [data]", "reads: [data, raw]"), ("Days: 7", "Days: 14")),
        job=(("--epochs=10", "--epochs=20"),),
    ),
    "machine-without-price": Change(
        job=(machine("a4-highgpu-8g", "NVIDIA_B200", 8), ("3600s}", "3600s, strategy: SPOT}")),
    ),
    "removal": Change(
        stack=(
            ("    raw: {forceDestroy: true}\n", ""),
            ("    check: {file: jobs/check.yaml}\n", ""),
            ('["group:ml-engineers@example.com"]', "[]"),
        ),
    ),
    "network": Change(
        stack=(
            (
                "  vertex-training:jobs:",
                "  vertex-training:network: {mode: psc, subnet: {range: 10.20.0.0/26}}\n"
                "  vertex-training:jobs:",
            ),
        ),
        job=(
            (
                "serviceAccount:",
                "pscInterfaceConfig:\n  networkAttachment: ${network.attachment}\nserviceAccount:",
            ),
        ),
    ),
    "account-and-secret": Change(
        stack=(
            (
                "writes: [artifacts]}\n",
                "writes: [artifacts]}\n    tuner: {secrets: [api-key]}\n"
                "  vertex-training:secrets: {api-key: {}}\n",
            ),
        ),
    ),
    "over-the-limits": Change(
        stack=(
            (
                "  vertex-training:jobs:",
                "  vertex-training:limits: {maxUsdPerJob: 5, strategies: [STANDARD]}\n"
                "  vertex-training:jobs:",
            ),
        ),
        job=(machine("a2-highgpu-1g", "NVIDIA_TESLA_A100", 1), ("3600s", "36000s")),
        exit_code=4,
    ),
    "against-a-policy": Change(
        stack=(("data: {forceDestroy: true}", "data: {forceDestroy: true, versioning: false}"),),
        exit_code=3,
        flags=("--policy-pack", "policy"),
    ),
}


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
        ("jobs/train.yaml", JOB, change.job),
        ("jobs/check.yaml", JOB, ()),
    ):
        for old, new in edits:
            assert old in text
            text = text.replace(old, new)
        (checkout.path / name).write_text(text)


def review(checkout: Checkout, change: Change, *flags: str) -> str:
    write(checkout, change)
    command = ("vt", "review", "--stack", "local", *change.flags, *flags)
    return checkout.run(*command, expect=change.exit_code).stdout


def readable(report: str) -> str:
    """What differs from run to run as a word: digests, and how far the local jobs have come."""
    report = re.sub(r"; the old one [^|]*\|", "; the old one … |", report)
    report = re.sub(r"; \d+ running jobs? cancelled after .*? so far\)", "", report)
    states = "queued|pending|running|succeeded|failed|cancelling|cancelled"
    lines = rf"(?:^- `[\w-]+`: (?:{states})\b.*\n)+\n"
    report = re.sub(lines, "", report, flags=re.MULTILINE)
    return re.sub(r"\b[0-9a-f]{16,64}\b", "(digest)", report)


def digest_in(report: str) -> str:
    [digest] = re.findall(r"Plan `([0-9a-f]{64})`", report)
    return digest


@pytest.fixture(scope="module")
def approved() -> dict[str, str]:
    """Digests of the plans reviewed so far: a review costs seconds."""
    return {}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_reported_as_committed(
    stack: Checkout, approved: dict[str, str], name: str
) -> None:
    told, file = review(stack, CHANGES[name]), REPORTS / f"{name}.md"
    approved[name] = digest_in(told)
    if os.environ.get("UPDATE_GOLDEN"):
        file.write_text(readable(told))
    assert readable(told) == file.read_text(), HINT


def test_a_job_a_read_and_a_bucket_are_all_that_is_named() -> None:
    told = (REPORTS / "job-reads-bucket.md").read_text()
    assert "**1 job replaced; at most $0.22; 1 right gained, 0 lost; nothing destroyed.**" in told
    everything_else = told[told.index("Everything else") : told.index("The stack after")]
    assert "1 updated;" in everything_else
    assert re.findall(r"^- \w+ `([^`]+)`", everything_else, re.MULTILINE) == ["storage-artifacts"]
    assert "`--epochs=10` → `--epochs=20`" in told
    assert re.findall(r"\| gained \|.*", told) == [
        line for line in told.splitlines() if "local-training-raw-local` |" in line
    ]


def test_rights_on_what_does_not_exist_yet_name_it() -> None:
    told = (REPORTS / "account-and-secret.md").read_text()
    assert "account `tuner-local@local-training.iam.gserviceaccount.com`" in told
    assert "secret `api-key-local`" in told
    assert "new, see" not in told


def test_a_plan_made_again_has_the_digest_it_was_approved_with(
    stack: Checkout, approved: dict[str, str]
) -> None:
    change = CHANGES["removal"]
    digest = approved.get("removal") or digest_in(review(stack, change))
    assert digest in review(stack, change, "--expect", digest)
