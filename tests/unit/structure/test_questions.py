"""Questions of a newcomer: each is answered at most two hops from CONTRIBUTING.md.

The first hop is a file, folder or page that CONTRIBUTING.md names. The second is what the docstring
of that package, or that page, names in turn.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.unit.structure.tree import ROOT, files

#: Question -> (the file that answers it, words that stand there).
QUESTIONS: Final = {
    "Where is a rule for job files added?": (
        "infra/vertex_training/customjob/rules/__init__.py",
        "SUBJECTS",
    ),
    "Where is a rule about boot disks?": (
        "infra/vertex_training/customjob/rules/compute/machines.py",
        "disk",
    ),
    "Where does an option of a bucket go?": (
        "infra/vertex_training/settings/model.py",
        "class Bucket",
    ),
    "What becomes of that option?": (
        "infra/vertex_training/components/storage.py",
        "gcp.storage.Bucket",
    ),
    "Where is the wait for a lease?": (
        "infra/vertex_training/customjob/protocol/submission.py",
        "timing.lease",
    ),
    "How long is a lease?": ("infra/vertex_training/customjob/protocol/timing.py", "lease"),
    "Where is a job cancelled when it leaves the stack?": (
        "infra/vertex_training/customjob/protocol/withdrawal.py",
        "cancel",
    ),
    "Where is an error of Vertex AI explained?": (
        "infra/vertex_training/customjob/google/job_service.py",
        "PermissionDenied",
    ),
    "Where is a fault added?": ("localcloud/localgcp/faults/model.py", "class Fault"),
    "Where is a machine's price?": ("infra/vertex_training/catalog/machines.yaml", "price"),
    "Where is the worst case of a job's cost?": (
        "infra/vertex_training/catalog/costs.py",
        "def of_job",
    ),
    "Where is an encrypted value refused?": (
        "infra/vertex_training/settings/reader.py",
        "encrypted",
    ),
    "Where is the physical name of a bucket made?": (
        "infra/vertex_training/naming.py",
        "def bucket",
    ),
    "Where is a kind of reference added?": (
        "infra/vertex_training/plan/references.py",
        "reference",
    ),
    "Which grants may a stack make?": ("infra/vertex_training/plan/grants.py", "roles/"),
    "What must another team grant?": ("infra/vertex_training/plan/external_grants.py", "gcloud"),
    "Which keys of a network exclude each other?": (
        "infra/vertex_training/stack_rules/network.py",
        "Problem(",
    ),
    "Which exceptions are there?": ("infra/vertex_training/errors.py", "class TrainingError"),
    "Which permissions does CI need for a resource type?": (
        "infra/vertex_training/catalog/resource_types.yaml",
        "gcp:storage/bucket:Bucket",
    ),
    "Which class stands in for a resource type?": (
        "localcloud/localgcp/gcp/services/__init__.py",
        "RESOURCE_TYPES",
    ),
    "Which environment has a replica?": (
        "localcloud/localgcp/runner/environment.py",
        "CLUSTER_SPEC",
    ),
    "Where are the engine's events parsed?": (
        "cli/vertex_training_cli/engine/events.py",
        "diagnostic",
    ),
    "When does an approval no longer hold?": (
        "cli/vertex_training_cli/deploy/approval.py",
        "digest",
    ),
    "Where is the policy on access to buckets?": (
        "infra/vertex_training/guardrails/buckets.py",
        "bucket-uniform-access",
    ),
    "Why does a job have four inputs?": ("docs/adr/0014-a-job-has-few-properties.md", "inputs"),
}
CODE: Final = re.compile(r"``?([\w./-]+)``?")
LINK: Final = re.compile(r"\]\(([^)#\s]+)")


def text_of(name: str) -> str:
    """What a reader sees first: a page, or the docstring of a package or module."""
    path = ROOT / name
    if path.is_dir():
        path /= "__init__.py"
    if not path.is_file() or path.suffix not in (".md", ".py"):
        return ""
    text = path.read_text()
    return text if path.suffix == ".md" else ast.get_docstring(ast.parse(text)) or ""


def hops(name: str) -> Iterator[str]:
    """The files and folders that a page, package or module names."""
    here = Path(name) if (ROOT / name).is_dir() else Path(name).parent
    text = text_of(name)
    for word in {*CODE.findall(text), *LINK.findall(text)}:
        for path in (Path(word), here / word, here / f"{word}.py"):
            found = (ROOT / path).resolve()
            if found.exists() and found.is_relative_to(ROOT):
                yield str(found.relative_to(ROOT))


def within_two_hops() -> set[str]:
    """Files that are named within two hops, with what stands for a package that is."""
    first = set(hops("CONTRIBUTING.md"))
    found = first | {name for hop in first for name in hops(hop)}
    return found | {f"{name}/__init__.py" for name in found if (ROOT / name).is_dir()}


@pytest.fixture(scope="module")
def reached() -> set[str]:
    return within_two_hops()


def test_there_are_twenty_questions() -> None:
    assert len(QUESTIONS) >= 20


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_is_answered_within_two_hops(question: str, reached: set[str]) -> None:
    answer, words = QUESTIONS[question]
    assert answer in reached
    assert words in (ROOT / answer).read_text()


def test_what_no_page_names_is_not_reached(reached: set[str]) -> None:
    assert not {name for name in files() if name.startswith("tests/corpus/wrong/")} & reached
