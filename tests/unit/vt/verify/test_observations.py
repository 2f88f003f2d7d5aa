"""What a run showed, as lines without secrets, people and names of projects."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from vertex_training.errors import CommandError
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.verify import refusals
from vertex_training_cli.verify.observations import differences, error_text, normaliser, shape

OWN = {"acme-first": "PROJECT", "210987654321": "NUMBER", "/home/ada/checkout": "CHECKOUT"}


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("projects/acme-net-prod/global/networks/x", "projects/PROJECT-2/global/networks/x"),
        ("projects/345678901234/secrets/x", "projects/PROJECT-2/secrets/x"),
        ("t@acme-net-prod.iam.gserviceaccount.com", "t@PROJECT-2.iam.gserviceaccount.com"),
        ("us-docker.pkg.dev/acme-net-prod/x", "us-docker.pkg.dev/PROJECT-2/x"),
        ("project = acme-net-prod and projects/acme-net-prod", "project = PROJECT-2 and"),
        ("user:ada@acme.com of 01ABCD-2345EF-678901", "user:[account] of [account]"),
        ("domain:acme.com may read", "domain:[account] may read"),
        ("projects/company.com:old-one/x", "projects/PROJECT-2/x"),
        ("/home/ada/checkout/x of acme-first and NUMBER 210987654321",
         "CHECKOUT/x of PROJECT and NUMBER NUMBER"),
        ("job 1234567890 of 0a1b2c3d4e5f", "job N of N"),
        ("token=ghp_0123456789abcdefghijABCDEFGHIJ012345", "token=[secret]"),
        ("service-1@gcp-sa-aiplatform.iam.gserviceaccount.com of us-docker.pkg.dev/vertex-ai/x",
         "service-1@gcp-sa-aiplatform.iam.gserviceaccount.com of us-docker.pkg.dev/vertex-ai/x"),
        ("gcp:projects/service:Service of projects/-/serviceAccounts",
         "gcp:projects/service:Service of projects/-/serviceAccounts"),
        ("projects/_/buckets/x and projects/-/serviceAccounts/y",
         "projects/_/buckets/x and projects/-/serviceAccounts/y"),
    ],
)  # fmt: skip
def test_secrets_people_and_projects_are_replaced(text: str, kept: str) -> None:
    found = normaliser(OWN)(text)
    assert kept in found
    assert [each for each in ("acme-net-prod", "ada@", "ghp_") if each in found] == []


def test_project_that_was_named_before_keeps_its_word() -> None:
    normalise = normaliser({"acme": "SHORT", "acme-first": "PROJECT"})
    assert normalise("projects/acme-net-prod/x") == "projects/PROJECT-2/x"
    text = "gs://acme-net-prod/x of acme-first, acme"
    assert normalise(text) == "gs://PROJECT-2/x of PROJECT, SHORT"


@pytest.mark.parametrize(
    ("value", "fields"),
    [
        ("x", {": text"}),
        (3, {": number"}),
        (None, set()),
        ({"pools": [{"n": 1}, {"m": True}]}, {"pools[].n: number", "pools[].m: bool"}),
        ({"labels": {"mine": "x"}, "__own": 1}, {"labels: map"}),
        ({"a": {"b": {"c": {"d": {"e": {"f": {"g": 1}}}}}}}, {"a.b.c.d.e.f: map"}),
    ],
)
def test_shape_has_the_fields_of_a_document_with_their_kinds(value: Any, fields: set[str]) -> None:
    assert shape(value) == fields


def test_error_has_its_codes_and_its_first_words() -> None:
    assert error_text("Error 403: no\n  right", str) == "403: Error 403: no right"
    assert error_text("x" * 200, str) == "x" * 159 + "…"


def test_lines_that_one_of_both_has_alone_differ_in_steps_that_were_reached() -> None:
    before = ["up | x | a", "up | x | b", "job | y | c"]
    found = differences(before, ["up | x | b", "up | x | d"])
    assert list(found) == ["- up | x | a", "+ up | x | d"]
    assert list(differences(before, reversed(before))) == []


JOB: dict[str, Any] = {
    "workerPoolSpecs": [{"containerSpec": {"imageUri": "x", "args": ["--epochs=3"]}}]
}


@pytest.mark.parametrize(
    ("provider", "settings"),
    [
        (None, {}),
        ({"type": "passphrase", "state": {"salt": "v1:x"}}, {"encryptionsalt": "v1:x"}),
        ({"type": "cloud", "state": {"url": "gcpkms://k", "encryptedkey": "e"}},
         {"secretsprovider": "gcpkms://k", "encryptedkey": "e"}),
        ({"type": "service", "state": {"url": "u"}}, {}),
    ],
)  # fmt: skip
def test_stack_file_of_an_edit_names_the_edited_job_and_opens_the_secrets_of_its_state(
    tmp_path: Path, provider: Any, settings: dict[str, str]
) -> None:
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(JOB))
    config = {"gcp:project": "local-x", "jobs": {"train": {"file": "job.yaml", "run": 2}}}
    (tmp_path / "Pulumi.first.yaml").write_text(yaml.safe_dump({"config": config}))
    ref = StackRef(tmp_path, "p", "first", "local-x", "us-central1")
    state = {"secrets_providers": provider}
    file = refusals.write_edit(ref, tmp_path / "a/b", "train", "train-new", state)
    assert file == tmp_path / "a/b/Pulumi.train-new.yaml"
    entry = {"train": {"file": "a/b/train-new.yaml", "run": 2}}
    assert yaml.safe_load(file.read_text()) == {"config": {**config, "jobs": entry}} | settings
    assert "displayName: train-new" in (tmp_path / "a/b/train-new.yaml").read_text()
    with pytest.raises(CommandError) as refused:
        refusals.write_edit(ref, tmp_path / "a", "other", "x", {})
    assert str(refused.value) == "Pulumi.first.yaml has no job other, or includes it."
