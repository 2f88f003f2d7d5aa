"""Go or stop: every way in which what would be deployed is not what was approved."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from pydantic import ValidationError

from vertex_training.errors import Problem
from vertex_training_cli.deploy.approval import (
    Approval,
    Checkout,
    checkout_problems,
    plan_problems,
    target_problems,
)
from vertex_training_cli.deploy.state_code import is_own_provider
from vertex_training_cli.deploy.target import Target, signed_in, target_of
from vertex_training_cli.engine.stacks import StackRef

TARGET = Target(
    backend="gs://acme-state",
    deploy_account="deploy@acme.iam.gserviceaccount.com",
    identity_provider="projects/1/locations/global/workloadIdentityPools/g/providers/github",
    settings={"gcp:project": "acme-ml-dev"},
)
APPROVED = Approval(
    stack="dev", commit="c" * 40, tree="a" * 40, report="f" * 64, target=TARGET
)  # fmt: skip
HERE = Checkout(commit="d" * 40, tree="a" * 40)
ANEW = (
    "read the new report (`make preview STACK=dev`) and approve that one: "
    "`vt approval --stack dev DIGEST`"
)


def test_another_stack_stops():
    assert checkout_problems(APPROVED, "prod", HERE) == [
        Problem(
            what="it is for another stack",
            value="prod",
            hint="take the record that was made for this stack",
            path=("approval of dev",),
        )
    ]


def test_all_reasons_are_told_at_once():
    worst = Checkout(commit="d" * 40, tree="b" * 40, changed=("a",))
    assert len(checkout_problems(APPROVED, "prod", worst)) == 3


def test_the_approved_plan_goes_and_any_other_stops():
    assert plan_problems(APPROVED, "f" * 64) == []
    assert plan_problems(APPROVED, "e" * 64) == [
        Problem(
            what="the plan is not the approved one, whose digest is ffffffffffff",
            value="eeeeeeeeeeee",
            hint=ANEW,
            path=("plan of dev",),
        )
    ]


def test_every_fact_of_another_target_is_told_with_what_was_approved():
    other = Target(
        backend="gs://mallory",
        deploy_account=TARGET.deploy_account,
        identity_provider=TARGET.identity_provider,
        settings={"gcp:project": "acme-ml-dev", "gcp:accessToken": "[sha256:0]"},
        redirects={"STORAGE_EMULATOR_HOST": "http://mallory"},
    )
    found = target_problems(APPROVED, other, "", "")
    texts = [problem.what for problem in found]
    assert texts == [
        "backend is not the approved one: gs://acme-state -> gs://mallory",
        "gcp:accessToken is not the approved one: (none) -> [sha256:0]",
        "STORAGE_EMULATOR_HOST is not the approved one: (none) -> http://mallory",
        f"the account signed in is not the approved one: {TARGET.deploy_account} -> (none)",
        "the identity provider signed in is not the approved one: "
        f"{TARGET.identity_provider} -> (none)",
    ]
    others = {(problem.value, problem.hint, problem.path) for problem in found}
    assert others == {("", f"put it back, or approve the new one: {ANEW}", ("target of dev",))}


STATE: Final = {"PULUMI_BACKEND_URL": "gs://acme-state"}


def test_nothing_changes_a_target_that_was_read() -> None:
    target = Target(backend="gs://acme-state")
    with pytest.raises(ValidationError, match="frozen"):
        target.backend = "gs://mallory"
    assert target.backend == "gs://acme-state"


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


JOBS: Final = ("vertex_training.customjob.provider", "CustomJobProvider")


def text(pickled: bytes) -> str:
    return base64.b64encode(pickled).decode()


def pickled(module: str, name: str, end: bytes = b")\x81\x94.", memo: bytes = b"\x94") -> bytes:
    """An instance of a class as protocol 4 has it: made without arguments, and nothing set."""
    names = b"".join(b"\x8c" + bytes([len(each)]) + each.encode() + memo for each in (module, name))
    body = names + b"\x93" + memo + end
    return b"\x80\x04\x95" + len(body).to_bytes(8, "little") + body


OWN: Final = text(pickled(*JOBS))
FOREIGN: Final = text(pickled("os", "system", b"\x8c\x02id\x94\x85\x94R\x94."))


@pytest.mark.parametrize(
    "other",
    [
        FOREIGN,
        text(pickled("vertex_training.serving.provider", "CustomJobProvider")),
        text(pickled(*JOBS, b"(\x8c\x01at\x81\x94.")),  # made with an argument
        text(pickled(*JOBS, b")\x81\x94}\x94\x8c\x01a\x94\x8c\x01b\x94sb.")),  # with an attribute
        text(pickled(*JOBS, b")R\x94.")),  # called
        text(pickled(*JOBS)[:-1]),  # without an end
        text(pickled(*JOBS)[:30]),
        text(b"\x8c\xff"),
        text(b"\x95\x01"),
        text(b"\xff."),
        text(b"."),
        "",
        "no base64",
        f"{OWN[:40]}\n{OWN[40:]}",
        OWN[:-1],
        "é" * 8,
        None,
        OWN.encode(),
        [OWN],
    ],
)
def test_anything_else_is_somebody_elses(other: Any) -> None:
    assert not is_own_provider(other)
