"""Scripted changes of two stacks: what stands in their files before, and what is edited.

``LIVE`` are reviewed with a real engine, some only every night. ``RECORDED`` are changes of a
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
  vertex-training:registry: {existing: projects/acme-images/locations/us/repositories/training}
  vertex-training:serviceAccounts:
    trainer: {reads: [data], writes: [artifacts]}
  vertex-training:jobs:
    train: {file: jobs/train.yaml}
    check: {file: jobs/check.yaml}
"""
#: Of another team: keys in Cloud KMS, and a bucket, which are there before the large stack.
RING: Final = "projects/local-training/locations/us-central1/keyRings/ml"
CORPUS: Final = "acme-corpus"
#: With something of every kind that can be lost, opened or paid for.
LARGE_STACK: Final = f"""\
config:
  gcp:project: local-training
  gcp:region: us-central1
  vertex-training:projectNumber: "971240389164"
  vertex-training:labels: {{cost-center: ml}}
  vertex-training:submitters: ["group:ml-engineers@example.com"]
  vertex-training:buckets:
    data: {{protect: true, softDeleteDays: 30}}
    raw: {{}}
    artifacts: {{keepNoncurrentDays: 30}}
    corpus: {{existing: {CORPUS}}}
  vertex-training:secrets: {{api-key: {{}}}}
  vertex-training:serviceAccounts:
    trainer: {{reads: [data], writes: [artifacts], secrets: [api-key]}}
    reader: {{reads: [raw, corpus]}}
  vertex-training:registry: {{keepVersions: 20}}
  vertex-training:network: {{mode: psc, subnet: {{range: 10.20.0.0/26}}}}
  vertex-training:reservations:
    spare: {{zone: us-central1-a, machineType: n1-standard-8, count: 1}}
  vertex-training:encryption: {{key: {RING}/cryptoKeys/first, covers: [buckets, jobs]}}
  vertex-training:policyLevels: {{job-in-a-network: advisory}}
  vertex-training:limits: {{maxUsdPerJob: 10, maxUsdPerEnvironment: 2000, machineTypes: ["n1-*"]}}
  vertex-training:jobs:
    train: {{file: jobs/train.yaml}}
    check: {{file: jobs/check.yaml, run: 2}}
"""
LARGE_JOB: Final = JOB + "pscInterfaceConfig: ${network.interface}\n"
ENCRYPTION: Final = (
    f"  vertex-training:encryption: {{key: {RING}/cryptoKeys/first, covers: [buckets, jobs]}}\n"
)
REGISTRY: Final = """\
  vertex-training:registry: {existing: projects/acme-images/locations/us/repositories/training}
"""
RESERVATIONS: Final = """\
  vertex-training:reservations:
    spare: {zone: us-central1-a, machineType: n1-standard-8, count: 1}
"""
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
    goes: tuple[str, ...] = ()
    """What of value goes, is opened or guarded less: a headline says this, and alarms of nothing
    else. Names and values without their quotes."""
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
        goes=("data is lost: storage-raw (destroyed)",),
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
    "registry-existing-dropped": Change(
        stack=((REGISTRY, ""),),
        goes=(
            "replaced by a new, empty resource: registry-docker "
            "(before: us-docker.pkg.dev/acme-images/training)",
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
        goes=("data is lost: storage-data (old versions of objects: on → off)",),
        stack=(("data: {forceDestroy: true}", "data: {forceDestroy: true, versioning: false}"),),
        exit_code=3,
        flags=("--policy-pack", "policy"),
    ),
    "policy-level-lowered": Change(
        goes=(
            "data is lost: storage-data (old versions of objects: on → off)",
            "policy levels lowered: bucket-versioned mandatory → advisory",
        ),
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
    "retention-shortened": Change(
        goes=(
            "data is lost: storage-data (deleted objects can be restored for: 30 days → 7 days)",
        ),
        stack=(("softDeleteDays: 30", "softDeleteDays: 7"),),
    ),
    "lifecycle-deletion": Change(
        goes=(
            "data is lost: storage-artifacts (lifetime of objects: never deleted → 10 days)",
            "storage-artifacts (lifetime of old versions: 30 days → 3 days)",
        ),
        stack=(("{keepNoncurrentDays: 30}", "{keepNoncurrentDays: 3, deleteAfterDays: 10}"),),
    ),
    "protection-removed": Change(
        goes=("protection removed: storage-data",), stack=(("protect: true, ", ""),)
    ),
    "protected-bucket-removed": Change(
        goes=("deployment refused because of protected resources: storage-data",),
        stack=(
            ("    data: {protect: true, softDeleteDays: 30}\n", ""),
            ("reads: [data], ", ""),
        ),
        exit_code=1,
    ),
    "bucket-emptied-on-delete": Change(
        goes=("data is lost: storage-raw (refusal to delete a bucket with objects: on → off)",),
        stack=(("raw: {}", "raw: {forceDestroy: true}"),),
    ),
    "bucket-renamed": Change(
        goes=(
            "data is lost: storage-raw (destroyed)",
            "renamed without formerly: raw → crude (formerly: raw in buckets.crude keeps the "
            "resource)",
        ),
        stack=(("raw: {}", "crude: {}"), ("[raw, corpus]", "[crude, corpus]")),
    ),
    "registry-clean-up": Change(
        goes=(
            "data is lost: registry-docker (lifetime of images: 30 days → 1 days)",
            "registry-docker (versions kept per image: 20 versions → 2 versions)",
        ),
        stack=(("{keepVersions: 20}", "{keepVersions: 2, deleteUntaggedAfterDays: 1}"),),
    ),
    "registry-of-another-team": Change(
        stack=(("  vertex-training:registry: {keepVersions: 20}\n", REGISTRY),),
        goes=("data is lost: registry-docker (destroyed)",),
    ),
    "limits-raised": Change(
        goes=(
            "limits raised: limits.maxUsdPerJob $10.00 → $500.00",
            "limits.machineTypes n1-* → n1-*, a2-*",
        ),
        stack=(
            (
                'maxUsdPerJob: 10, maxUsdPerEnvironment: 2000, machineTypes: ["n1-*"]',
                'maxUsdPerJob: 500, maxUsdPerEnvironment: 2000, machineTypes: ["n1-*", "a2-*"]',
            ),
        ),
    ),
    "limits-widened": Change(
        goes=("limits raised: limits.machineTypes n1-* → n*",),
        stack=(('machineTypes: ["n1-*"]', 'machineTypes: ["n*"]'),),
    ),
    "reservation-grown": Change(
        goes=("(also when idle): +$554.80 a month (spare-local 1 → 3 x n1-standard-8",),
        stack=(("count: 1", "count: 3"),),
    ),
    "public-member": Change(
        goes=("opened to everybody: bucket local-training-raw-local",),
        program=((OBJECTS, PUBLIC_MEMBER + OBJECTS),),
    ),
    "egress-opened": Change(
        goes=("firewall rules with egress to any address: network-allow-web",),
        stack=(
            (
                "{range: 10.20.0.0/26}}",
                "{range: 10.20.0.0/26}, "
                'allow: {web: {ports: ["443"], destinationRanges: [0.0.0.0/0]}}}',
            ),
        ),
    ),
    "account-removed": Change(stack=(("    reader: {reads: [raw, corpus]}\n", ""),)),
    "submitters-widened": Change(
        stack=(('s@example.com"]', 's@example.com", "group:everyone@example.com"]'),)
    ),
    "image-promoted": Change(
        goes=(
            "image trainer: sha256:aaaaaaaaaaaa → sha256:bbbbbbbbbbbb",
            "1 running job cancelled after 3h 0m ($0.66 so far)",
        ),
        job=(("a" * 64, "b" * 64),),
    ),
    "job-edited": Change(
        goes=(
            "at most $0.22 → $0.44",
            "1 running job cancelled after 3h 0m ($0.66 so far)",
        ),
        job=(("--epochs=10", "--epochs=20"), ("3600s", "7200s")),
    ),
    "job-removed": Change(
        goes=("1 running job cancelled after 3h 0m ($0.66 so far)",),
        stack=(("    check: {file: jobs/check.yaml, run: 2}\n", ""),),
    ),
    "job-reverted": Change(stack=((", run: 2", ""),)),
    "region-moved": Change(
        goes=(
            "data is lost: registry-docker (recreated without data)",
            "secrets-api-key (recreated without data)",
            "reserved machines released: spare-local",
            "encrypted with another key: projects/local-training/locations/us-central1",
            "deployment refused because of protected resources: storage-data",
        ),
        stack=(("us-central1", "europe-west4"),),
        exit_code=1,
    ),
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
    "key-changed": Change(
        stack=(("cryptoKeys/first", "cryptoKeys/second"),),
        goes=(
            "encrypted with another key: first → second (storage-artifacts, storage-control, "
            "storage-data and 4 more)",
            "2 running jobs cancelled after up to 3h 0m ($1.32 so far)",
        ),
    ),
    "encryption-removed": Change(
        stack=((ENCRYPTION, ""),),
        goes=(
            "no longer encrypted with your key: first (storage-artifacts, storage-control, "
            "storage-data and 4 more)",
        ),
    ),
    "shell-opened": Change(
        job=(("scheduling:", "enableWebAccess: true\nscheduling:"),),
        goes=("new shell access to machines of jobs: train",),
    ),
    "machine-enlarged": Change(
        job=(("n1-standard-4", "n1-highmem-32"),), goes=("at most $0.22 → $2.18",)
    ),
    "job-to-spot": Change(
        job=(("3600s}", "3600s, strategy: SPOT}"),), goes=("at most $0.22 → $0.10",)
    ),
    "existing-dropped": Change(
        stack=((f"{{existing: {CORPUS}}}", "{}"),),
        goes=(f"replaced by a new, empty resource: storage-corpus (before: {CORPUS})",),
    ),
    "job-renamed": Change(
        stack=((" check: {file", " verify: {file"),),
        goes=(
            "1 running job cancelled after 3h 0m ($0.66 so far)",
            "renamed without formerly: check → verify (formerly: check in jobs.verify keeps the "
            "resource)",
        ),
    ),
    "job-renamed-by-formerly": Change(
        stack=((" check: {file", " verify: {formerly: check, file"),)
    ),
    "bucket-renamed-by-formerly": Change(
        stack=(("raw: {}", "crude: {formerly: raw}"), ("[raw, corpus]", "[crude, corpus]")),
    ),
    "reads-paid-for": Change(
        stack=(("softDeleteDays: 30}", "softDeleteDays: 30, storageClass: ARCHIVE}"),),
        goes=("retrieval fees: storage-data (STANDARD → ARCHIVE, $0.05 a GB)",),
    ),
    "reservation-over-the-limit": Change(
        stack=(("count: 1", "count: 30"),),
        goes=("the environment's limits are exceeded",),
        exit_code=4,
    ),
    "reservation-removed": Change(
        stack=((RESERVATIONS, ""),),
        goes=(
            "reservations (also when idle): -$277.40 a month",
            "reserved machines released: spare-local (1 x n1-standard-8 in us-central1-a)",
        ),
    ),
    "person-reads-data": Change(
        stack=(
            (
                "data: {protect: true,",
                "data: {members: {roles/storage.objectViewer: ['user:kim@gmail.com']}, "
                "protect: true,",
            ),
        ),
        goes=("new members of other domains: user:kim@gmail.com",),
    ),
    "administrator": Change(
        stack=(("raw: {}", "raw: {members: {roles/storage.admin: ['group:ops@example.com']}}"),),
        goes=(
            "new administrator roles: group:ops@example.com roles/storage.admin on bucket "
            "local-training-raw-local",
        ),
    ),
    "drift-silenced": Change(
        stack=(
            (
                "  vertex-training:jobs:",
                "  vertex-training:drift: {allowed: {audit: {member: 'group:audit@example.com', "
                "role: roles/storage.objectViewer, policy: b/local-training-data-local, "
                "reason: they read every quarter}}}\n  vertex-training:jobs:",
            ),
        ),
        goes=(
            "drift no longer reported: group:audit@example.com: roles/storage.objectViewer on "
            "b/local-training-data-local",
        ),
    ),
    "rule-lowered": Change(
        stack=(
            (
                "  vertex-training:jobs:",
                "  vertex-training:rules: {output-field: note}\n  vertex-training:jobs:",
            ),
        ),
        goes=("rule levels lowered: output-field warning → note",),
    ),
    "secret-removed": Change(
        stack=(
            ("  vertex-training:secrets: {api-key: {}}\n", ""),
            (", secrets: [api-key]", ""),
        ),
        goes=("data is lost: secrets-api-key (destroyed)",),
    ),
    "secret-added": Change(stack=(("{api-key: {}}", "{api-key: {}, other: {}}"),)),
    "bucket-locked": Change(
        stack=(("raw: {}", "raw: {retention: {days: 30, locked: true}}"),),
        goes=("retention locked permanently: storage-raw (objects cannot be deleted for 30 days",),
    ),
}
