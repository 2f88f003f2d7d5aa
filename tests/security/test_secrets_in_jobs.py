"""Tests that rules and policy detect secrets in a job, and no harmless text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from typer.testing import CliRunner

from vertex_training.customjob.rules.job import Job
from vertex_training.customjob.rules.secrets import secret_in_args, secret_in_env
from vertex_training.guardrails.policy import Resource, load
from vertex_training.secret_rules.redaction import redacted
from vertex_training_cli.cli import app
from vertex_training_cli.engine.values import redact

CORPUS: Final = Path(__file__).parents[1] / "corpus" / "secrets"
POLICY: Final = next(policy for policy in load() if policy.id == "job-no-secret-in-env")


def read(name: str) -> Any:
    return yaml.safe_load((CORPUS / name).read_text(encoding="utf-8").replace("¦", ""))


def secrets() -> list[tuple[str, dict[str, Any]]]:
    """Return shape and containerSpec of each secret."""
    return [
        (entry["shape"], _container(entry.get("words", []), entry.get("env", {}).items()))
        for entry in read("secrets.yaml")
    ]


def harmless() -> Iterator[tuple[str, dict[str, Any]]]:
    """Return text and containerSpec of each harmless text."""
    texts = read("harmless.yaml")
    for word in texts["words"]:
        yield word, _container([word], [])
    for line in texts["shell"]:
        yield line, _container(["sh", "-c", line], [])
    for name, value in texts["env"]:
        yield f"{name}={value}", _container([], [(name, value)])


def _container(words: list[str], env: Any) -> dict[str, Any]:
    return {"args": words, "env": [{"name": name, "value": value} for name, value in env]}


def found_by(container: dict[str, Any]) -> tuple[bool, bool]:
    """Return whether the rules of job files detect a secret, and whether the policy does."""
    spec = {"workerPoolSpecs": [{"containerSpec": container}]}
    job = Job({"jobSpec": spec})
    props = {"request": json.dumps({"jobSpec": spec})}
    resource = Resource("pulumi-python:dynamic/vertex:CustomJob", "job", props, "prod")
    rules = [*secret_in_env(job), *secret_in_args(job)]
    return bool(rules), bool(POLICY.violations(resource))


def test_sixty_secrets_are_detected_and_two_hundred_harmless_texts_pass() -> None:
    shapes, texts = secrets(), list(harmless())
    missed = [shape for shape, container in shapes if found_by(container) != (True, True)]
    flagged = [text for text, container in texts if found_by(container) != (False, False)]
    print(f"found: {len(shapes) - len(missed)} of {len(shapes)} secrets")
    print(f"flagged: {len(flagged)} of {len(texts)} harmless texts")
    assert len({shape for shape, _ in shapes}) == 60
    assert len({text for text, _ in texts}) >= 200
    assert missed == []
    assert flagged == []


def test_harmless_text_is_not_redacted() -> None:
    texts = [text for name in ("words", "shell") for text in read("harmless.yaml")[name]]
    assert [text for text in texts if redacted(text) != text] == []


def test_review_redacts_secrets_and_the_request_stays_valid_json() -> None:
    for shape, container in secrets():
        text = json.dumps({"jobSpec": {"workerPoolSpecs": [{"containerSpec": container}]}})
        assert "[secret]" in redacted(text), shape
        json.loads(redacted(text))
        for token in ("hunter2", "FAKEfakeFAKE", "0123456789abcdef0123", "FAKEFAKE"):
            assert token not in redacted(text), shape


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SSHPASS", "canary-two"),
        ("REDISCLI_AUTH", "canary-two"),
        ("ADMIN_PW", "canary-two"),
        ("BASIC_AUTH", "me_canary"),
        ("BEARER", "canary-two"),
        ("SESSION_COOKIE", "canary-two"),
        ("MLFLOW_TRACKING_TOKEN", "canary-two"),
        ("COHERE_KEY", "canaryZ9" * 5),
        ("FERNET_KEY", "canary+Z9" * 4 + "="),
        ("LICENSE_KEY", "CANARY-ABCD-2345"),
        ("INDEX", "https://canary0Z9canary0Z9@pypi.example/simple"),
        ("RUN", "mysql -pcanary2x runs"),
        ("RUN", "sshpass -p canary2x ssh h"),
        ("RUN", "echo canary | docker login -u me --password-stdin"),
        ("RUN", "train --password=canary2x,with,canary"),
        ("RUN", '{"password":"hun\\"canary"}'),
    ],
)
def test_secret_variable_is_reported_without_its_value(
    tmp_path: Path, name: str, value: str
) -> None:
    container = {"imageUri": "a.b/c@sha256:" + "0" * 64, "env": [{"name": name, "value": value}]}
    pool = {"machineSpec": {"machineType": "n1-standard-4"}, "replicaCount": "1"}
    spec = {"workerPoolSpecs": [{**pool, "containerSpec": container}]}
    file = tmp_path / "job.yaml"
    file.write_text(yaml.safe_dump(spec))
    for format_ in ("text", "json"):
        done = CliRunner().invoke(app, ["check", str(file), "--format", format_])
        assert done.exit_code == 1
        assert "secret-in-env" in done.output
        assert "canary" not in done.output.lower()
    for text in (json.dumps({"jobSpec": spec}), json.dumps({"request": json.dumps(spec)})):
        json.loads(redact(text))
        assert "canary" not in redact(text).lower()
    assert "canary" not in json.dumps(redact({"jobSpec": spec})).lower()
    assert found_by(container) == (True, True)
