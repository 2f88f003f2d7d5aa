"""No secret is repeated in what is said of a file, wherever in it the secret stands."""

import base64
import doctest
import json
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from vertex_training.secret_rules import redaction
from vertex_training.secret_rules.redaction import masked, redacted
from vertex_training_cli.cli import app

DATA = yaml.safe_load((Path(__file__).parents[3] / "corpus/secret_rules.yaml").read_text("utf-8"))
SECRET = "canary-hunter2"
ENV = "workerPoolSpecs:\n- containerSpec:\n    imageUri: a.b/c\n    env: %s"


def test_examples():
    assert doctest.testmod(redaction).failed == 0


@pytest.mark.parametrize(
    "text",
    [
        ENV % f"[{{name: DB_PASSWORD, value: {SECRET}}}]",
        ENV % f"{{DB_PASSWORD: {SECRET}}}",
        ENV % f"[DB_PASSWORD={SECRET}]",
        ENV % f"[{SECRET}]",
        ENV % f"[{{name: A, valu: {SECRET}}}]",
        ENV % f"[{{name: A-B, value: {SECRET}}}]",
        ENV % f"[{{name: A_TOKEN, value: [{SECRET}]}}]",
        (ENV % "[{name: PIN, value: 48151623}]"),
        f"workerPoolSpecs: [{{containerSpec: {{imageUri: https://me:{SECRET}@host/x}}}}]",
        f"workerPoolSpecs: [{{containerSpec: {{args: ['--db=pg://me:{SECRET}@host/x']}}}}]",
        f"password: {SECRET}",
        f"env: [{{name: DB_PASSWORD, value: {SECRET}: x}}",
    ],
)
@pytest.mark.parametrize("format_", ["text", "json", "github"])
def test_a_refused_file_is_reported_without_the_secret(tmp_path: Path, text, format_):
    file = tmp_path / "job.yaml"
    file.write_text(f"{text}\n")
    done = CliRunner().invoke(app, ["check", str(file), "--format", format_])
    assert done.exit_code == 1
    assert "job.yaml" in done.output
    assert SECRET not in done.output
    assert "48151623" not in done.output


@pytest.mark.parametrize(
    "text",
    [
        "wandb-api-key: {value: hunter2hunter2}",
        "password: {user: me, value: hunter2hunter2}",
        "password: {a: {b: c}, value: hunter2hunter2} # why",
        "db_password: [old, hunter2hunter2]",
        '"password": {"value": "hunter2hunter2"}',
        "password: {value: hunter2hunter2",
    ],
)
def test_a_mapping_or_list_after_a_secrets_name_is_hidden_as_a_whole(text: str) -> None:
    assert "hunter2" not in redacted(text)
    assert "hunter2" not in masked(text)
    assert len(masked(text)) == len(text)


@pytest.mark.parametrize(
    "token",
    [
        "nvapi-" + "abcdEFGH12" * 6,
        "pcsk_" + "abcdEFGH12" * 5,
        "sk-lf-" + "0123abcd-0123-" + "abcd-0123-0123456789ab",
        base64.b64encode(json.dumps({"type": "service_account", "id": "x" * 90}).encode()).decode(),
        base64.b64encode(
            json.dumps({"type": "service_account", "id": "x" * 90}, indent=2).encode()
        ).decode(),
        base64.b64encode(b'{"type":"service_account","id":"' + b"x" * 90).decode(),
    ],
)
def test_a_key_of_a_service_that_ml_teams_use_is_withheld_to_its_end(token):
    assert redacted(f"KEYFILE={token} b") == "KEYFILE=[secret] b"


@pytest.mark.parametrize("row", DATA["shown"], ids=lambda row: row["text"])
def test_a_value_after_a_name_is_hidden_to_its_end(row):
    assert redacted(row["text"]) == row.get("shown", row["text"])
    if "shown" not in row:
        assert not redaction.contains_secret(row["text"])
