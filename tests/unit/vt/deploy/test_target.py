"""What an approval binds beside the plan: where a deployment goes, and as whom."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from vertex_training_cli.deploy.approval import signed_in, target_of
from vertex_training_cli.engine.stacks import StackRef

STATE: Final = {"PULUMI_BACKEND_URL": "gs://acme-state"}


def dev(folder: Path, **file: Any) -> StackRef:
    """The stack dev, whose file has these keys."""
    (folder / "Pulumi.dev.yaml").write_text(yaml.safe_dump({"config": {}, **file}))
    return StackRef(folder, "training", "dev", "acme-ml-dev", "us-central1")


def digest_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


LONGEST: Final = "x" * 200


@pytest.mark.parametrize(
    ("value", "recorded"),
    [
        (LONGEST, LONGEST),
        (f"{LONGEST}y", f"[sha256:{digest_of(f'{LONGEST}y')}]"),
        ("two\nlines", f"[sha256:{digest_of('two' + chr(10) + 'lines')}]"),
        ("hf_" + "canary" * 6, f"[sha256:{digest_of('hf_' + 'canary' * 6)}]"),
        (True, "true"),
        ({"b": 1, "a": [2]}, '{"a": [2], "b": 1}'),
    ],
)
def test_a_setting_is_recorded_on_one_line_and_a_long_or_secret_one_by_its_digest(
    tmp_path: Path, value: object, recorded: str
) -> None:
    target = target_of(dev(tmp_path, config={"gcp:x": value}), STATE)
    assert target.settings == {"gcp:x": recorded}


ADDRESS: Final = "https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts"


@pytest.mark.parametrize(
    ("content", "account", "provider"),
    [
        (
            {
                "audience": "//iam.googleapis.com/projects/1/x",
                "service_account_impersonation_url": f"{ADDRESS}/d@acme:generateAccessToken",
            },
            "d@acme",
            "projects/1/x",
        ),
        ({"client_email": "key@acme"}, "key@acme", ""),
        (
            {
                "client_email": "key@acme",
                "service_account_impersonation_url": f"{ADDRESS}/d@acme:generateAccessToken",
            },
            "d@acme",
            "",
        ),
        ({"service_account_impersonation_url": f"{ADDRESS}/d@acme:generateIdToken"}, "", ""),
        ({"service_account_impersonation_url": f"{ADDRESS}/d@acme:generateAccessToken/x"}, "", ""),
        (
            {"audience": "https://other.example/projects/1/x"},
            "",
            "https://other.example/projects/1/x",
        ),
        ({}, "", ""),
        ([], "", ""),
    ],
)
def test_who_is_signed_in_is_read_from_the_file_of_credentials(
    tmp_path: Path, content: object, account: str, provider: str
) -> None:
    file = tmp_path / "credentials.json"
    file.write_text(json.dumps(content))
    assert signed_in({"GOOGLE_APPLICATION_CREDENTIALS": str(file)}) == (account, provider)
