"""What a report and its archive hold, and what they do not."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest

from vertex_training_cli.verify.comparison import Comparison, Difference
from vertex_training_cli.verify.report import redactor, write

OWN = {"acme-first": "PROJECT", "210987654321": "NUMBER", "/home/ada/checkout": "CHECKOUT"}


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("projects/acme-net-prod/global/networks/x", "projects/PROJECT-2/global/networks/x"),
        ("projects/345678901234/secrets/x", "projects/PROJECT-2/secrets/x"),
        ("t@acme-net-prod.iam.gserviceaccount.com", "t@PROJECT-2.iam.gserviceaccount.com"),
        ("us-docker.pkg.dev/acme-net-prod/x", "us-docker.pkg.dev/PROJECT-2/x"),
        ("project = acme-net-prod and projects/acme-net-prod", "project = PROJECT-2 and"),
    ],
)
def test_names_of_other_projects_are_redacted_each_by_its_own_word(text: str, kept: str) -> None:
    as_text = redactor(OWN)
    found = as_text([text, {"hostProject": "acme-net-prod"}, "projects/company.com:old-one"])
    assert kept in found
    assert "acme-net-prod" not in found
    assert "345678901234" not in found
    assert "company.com" not in found
    if "345678901234" not in text:  # a project that was named before keeps its word
        assert as_text(["gs://acme-net-prod-data"]) == '[\n  "gs://PROJECT-2-data"\n]'


def test_what_google_names_alike_everywhere_stays() -> None:
    agent = "service-1@gcp-sa-aiplatform.iam.gserviceaccount.com"
    image = "us-docker.pkg.dev/vertex-ai/training/tf-cpu.2-15"
    found = redactor(OWN)([agent, image, "projects/_/buckets/x", "projects/-/serviceAccounts/y"])
    assert [
        each for each in (agent, image, "projects/_/", "projects/-/") if each not in found
    ] == []


def test_files_and_archive_are_redacted_and_name_no_user(tmp_path: Path) -> None:
    comparison = Comparison((Difference("up", "call acme-first", ("a | b `c`",)),), ("x: y",))
    folder = tmp_path / "a/report"
    archive = write(
        folder, "first", comparison, {"up": {"result": {"seconds": 3.0}}},
        {"up-events": [{"token": "hunter2-Zk3v9QpLr8tYw5", "by": "ada@acme.com"}]},
        ended="by ada@acme.com", as_text=redactor(OWN),
    )  # fmt: skip
    with tarfile.open(archive) as found:
        entries = found.getmembers()
        texts = {each.name: found.extractfile(each).read().decode() for each in entries}  # type: ignore[union-attr]
    assert sorted(texts) == [
        "report/differences.json",
        "report/differences.md",
        "report/observations.json",
        "report/records/up-events.json",
    ]
    assert {(each.uname, each.uid) for each in entries} == {("", 0)}
    assert {(each.gname, each.gid) for each in entries} == {("", 0)}
    assert {name: (folder.parent / name).read_text() for name in texts} == texts
    assert texts["report/differences.json"] == (
        '{\n  "version": 1,\n  "stack": "first",\n  "ended": "by [account]",\n'
        '  "differences": [\n    {\n      "step": "up",\n      "subject": "call PROJECT",\n'
        '      "details": [\n        "a | b `c`"\n      ]\n    }\n  ],\n'
        '  "notCompared": [\n    "x: y"\n  ]\n}\n'
    )
    assert texts["report/observations.json"].startswith('{\n  "version": 1,\n')
    assert json.loads(texts["report/observations.json"]) == {
        "version": 1,
        "steps": {"up": {"result": {"seconds": 3.0}}},
    }
    assert json.loads(texts["report/records/up-events.json"]) == [
        {"token": "[secret]", "by": "[account]"}
    ]
    assert "1 difference" in texts["report/differences.md"]


def test_of_two_names_the_longer_one_is_replaced() -> None:
    assert redactor({"acme": "SHORT", "acme-first": "PROJECT"})("acme-first acme") == (
        '"PROJECT SHORT"'
    )
