"""What the program registers for a stack, under Pulumi's mocks."""

import asyncio

import pulumi

from tests import fixture_project
from tests.fixture_project import PROJECT
from vertex_training import program
from vertex_training.stack import read_settings, with_packages


class Recorder(pulumi.runtime.Mocks):
    """Remembers what is registered and answers with what the cloud would fill in."""

    def __init__(self):
        self.registered = {}

    def new_resource(self, args):
        self.registered[args.name] = (args.typ, args.inputs)
        state = dict(args.inputs)
        if args.typ == "gcp:serviceaccount/account:Account":
            email = f"{args.inputs['accountId']}@{args.inputs['project']}.iam.gserviceaccount.com"
            state |= {"email": email, "member": f"serviceAccount:{email}", "name": email}
        if args.typ == "gcp:compute/globalAddress:GlobalAddress":
            state.setdefault("address", "10.128.0.0")
        return f"{args.name}-id", state

    def call(self, args):
        raise AssertionError(f"a preview must not look anything up: {args.token}")


def settings(stack, **changes):
    raw = {key.split(":")[1]: value for key, value in fixture_project.config(stack).items()}
    return read_settings(raw | {"stack": stack} | changes, PROJECT)


def registered(stack, **changes):
    recorder = Recorder()
    # A loop of its own: Pulumi's mocks leave theirs behind, and closing it twice is an error.
    asyncio.set_event_loop(asyncio.new_event_loop())
    pulumi.runtime.set_mocks(recorder, "vertex-training", stack)

    @pulumi.runtime.test
    def run():
        program.deploy(with_packages(settings(stack, **changes), PROJECT))

    run()
    return recorder.registered


def grants(resources):
    """(who, role, where) of every grant."""
    found = set()
    for type_, inputs in resources.values():
        if type_.lower().endswith("iammember"):
            place = next(
                inputs[k]
                for k in ("bucket", "secretId", "serviceAccountId", "repository", "project")
                if k in inputs
            )
            found.add((inputs["member"], inputs["role"], place))
    return found
