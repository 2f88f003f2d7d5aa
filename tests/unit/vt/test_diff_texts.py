"""What ``vt diff`` writes of a comparison, as a whole; which names are neutral in it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.vt.conftest import JOB, STACK
from vertex_training.stack import Stack, load
from vertex_training_cli import diff
from vertex_training_cli.diff import JobDifference, StackComparison
from vertex_training_cli.engine.fields import FieldDifference

SETTINGS = (
    FieldDifference("buckets.data.versioning", "true", None),
    FieldDifference("labels.password", None, "password=hunter2hunter2"),
)
JOBS = (
    JobDifference("eval", only_in="prod"),
    JobDifference("träin", fields=(FieldDifference("jobSpec.x", "1", "2"),)),
)
FOUND = StackComparison("dev", "prod", SETTINGS, JOBS, ("a", "b"))


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (FOUND,
         "dev -> prod\n\nsettings:\n  buckets.data.versioning: true -> (none)\n"
         "  labels.password: (none) -> password=[secret]\n\njob eval: only in prod\n\n"
         "job träin:\n  jobSpec.x: 1 -> 2\n\nthe same request in both: a, b\n"),
        (StackComparison("dev", "prod", SETTINGS[:1], (), ()),
         "dev -> prod\n\nsettings:\n  buckets.data.versioning: true -> (none)\n"),
        (StackComparison("dev", "prod", (), JOBS[:1], ()),
         "dev -> prod\n\njob eval: only in prod\n"),
        (StackComparison("dev", "prod", (), (), ("a",)),
         "dev and prod are the same, but for their names.\n"),
    ],
)  # fmt: skip
def test_people_read_settings_first_then_jobs_and_what_is_the_same(
    found: StackComparison, text: str
) -> None:
    assert diff.as_text(found) == text


def test_programs_read_all_of_it_with_null_for_a_side_that_has_none() -> None:
    text = diff.as_json(FOUND)
    assert text.startswith('{\n  "version": 1,\n  "same": false,\n  "one": "dev",\n')
    assert text.endswith('  "same_jobs": [\n    "a",\n    "b"\n  ]\n}\n')
    assert '"name": "träin"' in text
    assert json.loads(text) == {
        "version": 1,
        "same": False,
        "one": "dev",
        "other": "prod",
        "settings": [
            {"path": "buckets.data.versioning", "old": "true", "new": None},
            {"path": "labels.password", "old": None, "new": "password=[secret]"},
        ],
        "jobs": [
            {"name": "eval", "only_in": "prod", "fields": []},
            {
                "name": "träin",
                "only_in": "",
                "fields": [{"path": "jobSpec.x", "old": "1", "new": "2"}],
            },
        ],
        "same_jobs": ["a", "b"],
    }
    assert json.loads(diff.as_json(StackComparison("a", "b", (), (), ())))["same"] is True


SEARCH = """\
maxTrialCount: 2
parallelTrialCount: 1
studySpec:
  metrics: [{metricId: loss, goal: MINIMIZE}]
  parameters: [{parameterId: rate, doubleValueSpec: {minValue: 0.1, maxValue: 1}}]
trialJobSpec:
""" + "".join(f"  {line}\n" for line in JOB.splitlines())


@pytest.fixture
def two(project):
    """Loads ``dev``, and ``prod``: the same with changes of its text, in another project."""

    def load_both(*changes: tuple[str, str]) -> tuple[Stack, Stack]:
        text = STACK.replace("acme-ml-dev", "acme-ml-prod").replace("210987654321", "109876543210")
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        (project / "Pulumi.prod.yaml").write_text(text)
        (project / "jobs" / "search.yaml").write_text(SEARCH)
        return load(project, "dev"), load(project, "prod")

    return load_both


def test_a_request_is_compared_with_its_references_in_place_of_names(project, two) -> None:
    words = '"${stack.name}-x", "${serviceAccounts.trainer}", "devs", "x-acme-ml-dev"]'
    (project / "jobs" / "train.yaml").write_text(JOB.replace("]", f", {words}"))
    pool = {
        "machineSpec": {"machineType": "n1-standard-4"},
        "replicaCount": 1,
        "containerSpec": {
            "imageUri": f"${{images.trainer}} (trainer@sha256:{'a' * 64})",
            "args": ["--data=${buckets.data}/train", "${stack.name}-x",
                     "${serviceAccounts.trainer}", "devs", "x-acme-ml-dev"],
        },
    }  # fmt: skip
    assert diff.requests_of(two()[0]) == {
        "train": {
            "displayName": "${stack.name}-train",
            "jobSpec": {
                "serviceAccount": "${serviceAccounts.trainer}",
                "baseOutputDirectory": {
                    "outputUriPrefix": "${buckets.artifacts}/a/${job.requestId}"
                },
                "workerPoolSpecs": [pool],
            },
        }
    }


@pytest.mark.parametrize(
    ("changes", "differences"),
    [
        ([], []),
        # the project's names count as words
        ([("{team: ml}", "{team: ml, a: acme-ml-prod, b: x-acme-ml-prod, c: acme-ml-prod2}")],
         [("labels.a", None, "${stack.project}"), ("labels.b", None, "x-acme-ml-prod"),
          ("labels.c", None, "acme-ml-prod2")]),
        # a part that one stack alone has is one text, in the order of its keys
        ([("data: {}", "data: {}, extra: {versioning: true, deleteAfterDays: 3}")],
         [("buckets.extra", None, '{"deleteAfterDays": 3, "versioning": true}')]),
        ([("[data], writes: [artifacts]", "[data], writes: [data, artifacts]")],
         [("serviceAccounts.trainer.writes[0]", "artifacts", "data"),
          ("serviceAccounts.trainer.writes[1]", None, "artifacts")]),
        ([("buckets: {data: {}, ", "buckets: {data: {versioning: false}, ")],
         [("buckets.data.versioning", "true", "false")]),
        # a job that one stack alone has is told as a job
        ([("  vertex-training:jobs:\n",
           "  vertex-training:tuning: {search: {file: jobs/search.yaml}}\n"
           "  vertex-training:jobs:\n")], []),
        ([("file: jobs/train.yaml}", "file: jobs/train.yaml}\n    more: {file: jobs/train.yaml}")],
         []),
    ],
)  # fmt: skip
def test_settings_are_compared_as_written_without_the_stacks_own_names(
    two, changes: list[tuple[str, str]], differences: list[Any]
) -> None:
    one, other = two(*changes)
    found = diff.compare(one, other)
    assert (found.one, found.other) == ("dev", "prod")
    assert [(each.path, each.old, each.new) for each in found.settings] == differences
    turned = diff.compare(other, one)
    assert [(each.path, each.new, each.old) for each in turned.settings] == differences
