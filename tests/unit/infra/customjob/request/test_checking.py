"""Where a finding of a rule stands in the file, and which findings a mistake of form hides."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from vertex_training.customjob import rules
from vertex_training.customjob.kinds import CUSTOM_JOB, TUNING_JOB, JobKind
from vertex_training.customjob.request import checking
from vertex_training.customjob.rules import Finding, Job, Rule
from vertex_training.errors import Location, Mend, Path, Problem
from vertex_training.located_yaml import document

GCLOUD = """\
serviceAccount: a
workerPoolSpecs:
- machine_spec: {machineType: m}
  replicaCount: 1
"""
REST = """\
displayName: x
job_spec:
  workerPoolSpecs:
  - machineSpec:
      machineType: m
"""
LONE = """\
workerPoolSpecs:
  containerSpec:
    args: x
"""
TUNING = """\
studySpec: {}
trialJobSpec:
  workerPoolSpecs: [{replicaCount: 1}]
"""


def read(text: str) -> document.Document:
    return document.read(text.encode(), "x.yaml")


@pytest.mark.parametrize(
    ("text", "path", "written"),
    [
        (GCLOUD, ("workerPoolSpecs", 0, "machineSpec", "machineType"),
         ("workerPoolSpecs", 0, "machine_spec", "machineType")),
        (GCLOUD, ("workerPoolSpecs", 0, "diskSpec", "bootDiskType"), ("workerPoolSpecs", 0)),
        (GCLOUD, ("serviceAccount", "x"), ("serviceAccount",)),
        (GCLOUD, ("scheduling",), ()),
        (GCLOUD, (), ()),
        (REST, ("jobSpec", "workerPoolSpecs", 0), ("job_spec", "workerPoolSpecs", 0)),
        (LONE, ("workerPoolSpecs", 0, "containerSpec", "args", 0),
         ("workerPoolSpecs", "containerSpec", "args")),
        (LONE, ("workerPoolSpecs", 0, "containerSpec", "args", 1),
         ("workerPoolSpecs", "containerSpec", "args")),
    ],
)  # fmt: skip
def test_a_path_is_spelled_as_in_the_file(text: str, path: Path, written: Path) -> None:
    assert checking.path_in_file(read(text), path) == written


def found_by(
    finding: Finding | list[Finding],
    text: str,
    kind: JobKind = CUSTOM_JOB,
    *,
    monkeypatch: pytest.MonkeyPatch,
    unreadable: tuple[Path, ...] = (),
    left_out: Any = frozenset(),
    subject: str = "pools",
    request: Any = None,
) -> list[Problem]:
    """What one rule that finds this is told as."""
    every = finding if isinstance(finding, list) else [finding]

    def check(_: Job) -> Iterator[Finding]:
        yield from every

    rule = Rule("some-rule", "It holds.", "a page", "warning", subject, check)
    unchecked = Rule("form", "It is read.", "a page", "error", "fields")
    monkeypatch.setattr(rules, "RULES", [unchecked, rule])
    job = Job({"jobSpec": {}} if request is None else request, unreadable=unreadable)
    return list(checking.findings(read(text), job, kind, left_out))


POOL = ("jobSpec", "workerPoolSpecs", 0)
MACHINE = (*POOL, "machineSpec")


@pytest.mark.parametrize(
    ("text", "kind", "path", "place"),
    [
        (GCLOUD, CUSTOM_JOB, ("workerPoolSpecs", 0, "machineSpec"), (3, 17)),
        (REST, CUSTOM_JOB, MACHINE, (5, 7)),
        (TUNING, TUNING_JOB, ("trialJobSpec", "workerPoolSpecs", 0, "machineSpec"), (3, 21)),
    ],
)
def test_a_finding_is_told_with_its_place_rule_and_level(
    text: str, kind: JobKind, path: Path, place: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    mend = Mend("value", 3)
    finding = Finding(MACHINE, "is wrong", "v", "h", mend=mend)
    [problem] = found_by(finding, text, kind, monkeypatch=monkeypatch)
    location = Location("x.yaml", *place)
    assert problem == Problem("is wrong", "v", "h", path, location, "some-rule", "warning")
    assert problem.mend is not None
    assert (problem.mend.action, problem.mend.to) == ("value", 3)
    assert problem.mend.at == checking.path_in_file(read(text), path)
    louder = Finding(MACHINE, "is wrong", level="error")
    assert [p.level for p in found_by(louder, text, kind, monkeypatch=monkeypatch)] == ["error"]


@pytest.mark.parametrize(
    ("kind", "unreadable", "what", "hint"),
    [
        (CUSTOM_JOB, (), "jobSpec is missing",
         "beside displayName and labels, REST's form has everything else in jobSpec"),
        (TUNING_JOB, (), "trialJobSpec is missing",
         "it says what each trial runs, as the jobSpec of a CustomJob"),
        (TUNING_JOB, (("studySpec", "metrics"),), "trialJobSpec is missing",
         "it says what each trial runs, as the jobSpec of a CustomJob"),
        # A mistake that may be the spec misspelt is the only one.
        (CUSTOM_JOB, (("labels", "a"),), "", ""),
        (TUNING_JOB, (("trialJobSpecs",),), "", ""),
        (TUNING_JOB, (("jobSpec", "workerPoolSpecs"),), "", ""),
    ],
)  # fmt: skip
def test_a_request_without_its_spec_is_told(
    kind: JobKind, unreadable: tuple[Path, ...], what: str, hint: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    text = "\n\ndisplayName: x\n"
    finding = Finding(("maxTrialCount",), "is wrong")
    found = found_by(
        finding, text, kind, monkeypatch=monkeypatch, unreadable=unreadable, request={"labels": {}}
    )
    location = Location("x.yaml", 3, 1)
    assert found == ([Problem(what, "", hint, (), location, "job-spec")] if what else [])
    # Rules of studies are asked also without one.
    study = found_by(
        finding, text, kind, monkeypatch=monkeypatch, unreadable=unreadable, subject="metrics",
        request={"labels": {}},
    )  # fmt: skip
    assert [p.rule for p in study] == [
        *(["job-spec"] if what else []),
        *(["some-rule"] if kind is TUNING_JOB else []),
    ]
