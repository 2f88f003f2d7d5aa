"""Scripted changes of two stacks: what stands in their files before, and what is edited.

``LIVE`` are reviewed with a real engine in every run of the tests. ``RECORDED`` are changes of a
larger stack: the engine's plan of each is in ``recorded/``, and is rendered anew in every run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

IMAGE: Final = f"docker.io/acme/trainer@sha256:{'a' * 64}"
JOB: Final = f"""\
serviceAccount: ${{serviceAccounts.trainer}}
baseOutputDirectory:
  outputUriPrefix: ${{buckets.artifacts}}/${{job.name}}/${{job.requestId}}
scheduling: {{timeout: 3600s}}
workerPoolSpecs:
  - machineSpec: {{machineType: n1-standard-4}}
    replicaCount: 1
    containerSpec:
      imageUri: {IMAGE}
      command: ["true"]
      args: ["--epochs=10"]
"""
STACK: Final = """\
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
#: With something of every kind that can be lost, opened or paid for.
LARGE_STACK: Final = """\
config:
  gcp:project: local-training
  gcp:region: us-central1
  vertex-training:projectNumber: "971240389164"
  vertex-training:labels: {cost-center: ml}
  vertex-training:submitters: ["group:ml-engineers@example.com"]
  vertex-training:buckets:
    data: {protect: true, softDeleteDays: 30}
    raw: {}
    artifacts: {keepNoncurrentDays: 30}
  vertex-training:secrets: {api-key: {}}
  vertex-training:serviceAccounts:
    trainer: {reads: [data], writes: [artifacts], secrets: [api-key]}
    reader: {reads: [raw]}
  vertex-training:registry: {keepVersions: 20}
  vertex-training:network: {mode: psc, subnet: {range: 10.20.0.0/26}}
  vertex-training:reservations:
    spare: {zone: us-central1-a, machineType: n1-standard-8, count: 1}
  vertex-training:limits: {maxUsdPerJob: 10, machineTypes: ["n1-*"]}
  vertex-training:jobs:
    train: {file: jobs/train.yaml}
    check: {file: jobs/check.yaml, run: 2}
"""
LARGE_JOB: Final = JOB + "pscInterfaceConfig: ${network.interface}\n"
#: Appended to a component of the program, where the stack file cannot say it.
PUBLIC_MEMBER: Final = """\
        gcp.storage.BucketIAMMember(
            "everybody-reads-raw",
            bucket=self.buckets["raw"].name,
            role="roles/storage.objectViewer",
            member="allUsers",
            opts=pulumi.ResourceOptions(parent=self),
        )
"""
OBJECTS: Final = "        self.objects = [\n"

Edits = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Change:
    """A change to a stack, and what a review of it ends with."""

    stack: Edits = ()
    """(what is written, what is written instead) in the stack file."""
    job: Edits = ()
    """The same in the file of job ``train``."""
    all_jobs: bool = False
    """Whether job ``check`` is edited as well."""
    program: Edits = ()
    """The same in ``infra/vertex_training/components/storage.py``."""
    exit_code: int = 0
    flags: tuple[str, ...] = ()


def edited(text: str, edits: Edits) -> str:
    """``text`` as a change has it."""
    for old, new in edits:
        assert old in text, f"nothing to edit: {old}"
        text = text.replace(old, new)
    return text


def machine(name: str, accelerator: str, count: int) -> tuple[str, str]:
    """Another machine for the job."""
    spec = f"{{machineType: {name}, acceleratorType: {accelerator}, acceleratorCount: {count}}}"
    return "{machineType: n1-standard-4}", spec


LIVE: Final[Mapping[str, Change]] = {
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
    "policy-level-lowered": Change(
        stack=(
            ("data: {forceDestroy: true}", "data: {forceDestroy: true, versioning: false}"),
            (
                "  vertex-training:jobs:",
                "  vertex-training:policyLevels: {bucket-versioned: advisory}\n"
                "  vertex-training:jobs:",
            ),
        ),
        flags=("--policy-pack", "policy"),
    ),
}

RECORDED: Final[Mapping[str, Change]] = {
    "nothing": Change(),
    "labels": Change(stack=(("cost-center: ml", "cost-center: research"),)),
    "retention-shortened": Change(stack=(("softDeleteDays: 30", "softDeleteDays: 7"),)),
    "lifecycle-deletion": Change(
        stack=(("{keepNoncurrentDays: 30}", "{keepNoncurrentDays: 3, deleteAfterDays: 10}"),)
    ),
    "protection-removed": Change(stack=(("protect: true, ", ""),)),
    "protected-bucket-removed": Change(
        stack=(
            ("    data: {protect: true, softDeleteDays: 30}\n", ""),
            ("reads: [data], ", ""),
        ),
        exit_code=1,
    ),
    "bucket-emptied-on-delete": Change(stack=(("raw: {}", "raw: {forceDestroy: true}"),)),
    "bucket-renamed": Change(stack=(("raw: {}", "crude: {}"), ("[raw]", "[crude]"))),
    "registry-clean-up": Change(
        stack=(("{keepVersions: 20}", "{keepVersions: 2, deleteUntaggedAfterDays: 1}"),)
    ),
    "limits-raised": Change(
        stack=(
            (
                'maxUsdPerJob: 10, machineTypes: ["n1-*"]',
                'maxUsdPerJob: 500, machineTypes: ["n1-*", "a2-*"]',
            ),
        )
    ),
    "reservation-grown": Change(stack=(("count: 1", "count: 3"),)),
    "public-member": Change(program=((OBJECTS, PUBLIC_MEMBER + OBJECTS),)),
    "egress-opened": Change(
        stack=(
            (
                "{range: 10.20.0.0/26}}",
                "{range: 10.20.0.0/26}, "
                'allow: {web: {ports: ["443"], destinationRanges: [0.0.0.0/0]}}}',
            ),
        )
    ),
    "account-removed": Change(stack=(("    reader: {reads: [raw]}\n", ""),)),
    "submitters-widened": Change(
        stack=(('s@example.com"]', 's@example.com", "group:everyone@example.com"]'),)
    ),
    "image-promoted": Change(job=(("a" * 64, "b" * 64),)),
    "job-edited": Change(job=(("--epochs=10", "--epochs=20"), ("3600s", "7200s"))),
    "job-removed": Change(stack=(("    check: {file: jobs/check.yaml, run: 2}\n", ""),)),
    "job-reverted": Change(stack=((", run: 2", ""),)),
    "region-moved": Change(stack=(("us-central1", "europe-west4"),), exit_code=1),
    "network-mode-changed": Change(
        stack=(
            (
                "mode: psc, subnet: {range: 10.20.0.0/26}",
                "mode: peering, ranges: {workers: {prefixLength: 18}}",
            ),
        ),
        job=(("pscInterfaceConfig: ${network.interface}", "network: ${network.name}"),),
        all_jobs=True,
    ),
}
