"""What the program registers for an environment, under Pulumi's mocks."""

from __future__ import annotations

import asyncio
import zlib
from typing import Any, NoReturn

import pulumi

from tests import fixture_project
from vertex_training.foundation import program, settings


def unique_id(email: str) -> str:
    """Number of a service account that the recorder made."""
    return f"1{zlib.crc32(email.encode()):020}"


class Recorder(pulumi.runtime.Mocks):
    """Remembers what is registered and answers with what the cloud would fill in."""

    def __init__(self) -> None:
        self.registered: dict[str, dict[str, Any]] = {}

    def new_resource(self, args: pulumi.runtime.MockResourceArgs) -> tuple[str, dict[str, Any]]:
        self.registered[args.name] = {"type": args.typ, **args.inputs}
        state = dict(args.inputs)
        if args.typ == "gcp:serviceaccount/account:Account":
            email = f"{args.inputs['accountId']}@{args.inputs['project']}.iam.gserviceaccount.com"
            state |= {"email": email, "member": f"serviceAccount:{email}", "name": email}
            state["uniqueId"] = unique_id(email)
        if args.typ == "gcp:projects/iAMCustomRole:IAMCustomRole":
            state["name"] = f"projects/{args.inputs['project']}/roles/{args.inputs['roleId']}"
        return f"{args.name}-id", state

    def call(self, args: pulumi.runtime.MockCallArgs) -> NoReturn:
        raise AssertionError(f"a preview must not look anything up: {args.token}")


def registered(stack: str, **changes: Any) -> dict[str, dict[str, Any]]:
    """Return the inputs of each resource that a stack of ``tests/fixtures/project`` declares."""
    file = fixture_project.config(stack, "bootstrap")
    raw = {key.split(":")[1]: value for key, value in file.items()}
    recorder = Recorder()
    asyncio.set_event_loop(asyncio.new_event_loop())
    pulumi.runtime.set_mocks(recorder, settings.SCHEMA.namespace, stack)

    @pulumi.runtime.test
    def run() -> None:
        program.deploy(settings.parse(raw | {"stack": stack} | changes))

    run()
    return recorder.registered


def grants(resources: dict[str, dict[str, Any]]) -> set[tuple[str, str, str, str]]:
    """(member, role, place, condition) of every grant."""
    places = ("bucket", "cryptoKeyId", "serviceAccountId", "project")
    return {
        (
            inputs["member"],
            inputs["role"],
            next(inputs[key] for key in places if key in inputs),
            inputs.get("condition", {}).get("expression", ""),
        )
        for inputs in resources.values()
        if inputs["type"].lower().endswith("iammember")
    }
