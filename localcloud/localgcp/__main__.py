"""``localgcp``: the command line of the local cloud.

Exit codes: 0 done, 1 it failed or nothing runs, 2 wrong usage; ``shell`` ends with that of the
shell or the command.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from typing import Final

from localgcp import lifecycle
from localgcp.clients import cloud_sdk
from localgcp.errors import LocalCloudError, StandInError
from localgcp.home import PRIVATE_UMASK, Home
from localgcp.home.environment import environment
from localgcp.inventory.projects import LOCAL_PREFIX, is_local

#: APIs that ``localgcp project`` enables.
_APIS: Final = (
    *("aiplatform", "artifactregistry", "batch", "cloudbuild", "compute", "iam", "logging"),
    *("monitoring", "secretmanager", "storage"),
)
_NOT_RUNNING: Final = ("the local cloud is not running.", "`localgcp start`")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; print an error as one line on stderr."""
    options = _parser().parse_args(arguments)
    command: Callable[[Home, argparse.Namespace], int] = options.run
    umask = os.umask(PRIVATE_UMASK)
    try:
        options.umask = umask
        return command(Home.find(), options)
    except (LocalCloudError, StandInError) as error:
        print(f"localgcp: {error}", file=sys.stderr)
        return 1
    finally:
        os.umask(umask)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="localgcp", description=("Run stand-ins for Google Cloud on this machine.")
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for run, text in (
        (_start, "start the local cloud; does nothing if it is running"),
        (_stop, "stop the local cloud and keep its files"),
        (_remove, "stop the local cloud and remove its files"),
        (_status, "print whether the local cloud is running, its ports and its folder"),
        (_env, "print the environment variables of the local cloud, for `eval`"),
    ):
        name = run.__name__.removeprefix("_")
        commands.add_parser(name, help=text, description=text).set_defaults(run=run)
    text = (
        "open a shell in which pulumi and Google's clients use the local cloud; start it if needed"
    )
    shell = commands.add_parser("shell", help=text, description=text)
    shell.add_argument("-c", "--command", help="run this command instead of a shell")
    shell.set_defaults(run=_shell)
    text = "create a project with all APIs enabled, and buckets in it"
    project = commands.add_parser("project", help=text, description=text)
    project.add_argument("id", help=f"the project's id, which begins with {LOCAL_PREFIX}")
    project.add_argument("buckets", nargs="*", metavar="BUCKET")
    project.set_defaults(run=_project)
    return parser


def _start(home: Home, _options: argparse.Namespace) -> int:
    info = lifecycle.start(home, _report)
    _report(f"running (process {info.pid})")
    return 0


def _stop(home: Home, _options: argparse.Namespace) -> int:
    _report("stopped" if lifecycle.stop(home) else "the local cloud was not running")
    return 0


def _remove(home: Home, options: argparse.Namespace) -> int:
    if lifecycle.check_removable(home):
        _stop(home, options)
    _report(
        f"removed {home.root}"
        if lifecycle.remove(home)
        else ("the local cloud has no files to remove")
    )
    return 0


def _status(home: Home, _options: argparse.Namespace) -> int:
    info = lifecycle.running(home)
    if info is None or not lifecycle.healthy(info):
        raise LocalCloudError(*_NOT_RUNNING)
    print(f"process {info.pid}, started at {info.started}; files in {home.root}")
    print(f"vertex: 127.0.0.1:{info.vertex_port}")
    print(f"storage: http://127.0.0.1:{info.storage_port}")
    return 0


def _env(home: Home, _options: argparse.Namespace) -> int:
    info = lifecycle.running(home)
    if info is None:
        raise LocalCloudError(*_NOT_RUNNING)
    for name, value in home.environment(info.ports).items():
        print(f"export {name}={shlex.quote(value)}")
    return 0


def _shell(home: Home, options: argparse.Namespace) -> int:
    env = environment(home, lifecycle.start(home, _report).ports)
    cloud_sdk.write_settings(home.cloud_sdk)
    sys.stdout.flush()
    os.umask(options.umask)
    program = os.environ.get("SHELL") or "/bin/sh"
    words = [program] if options.command is None else ["/bin/sh", "-c", options.command]
    os.execve(words[0], words, env)


def _project(home: Home, options: argparse.Namespace) -> int:
    from localgcp.gcp.emulator import Emulator
    from localgcp.inventory.store import BUCKET, SERVICE, Store

    if not is_local(options.id):
        raise LocalCloudError(f"project id {options.id} does not begin with {LOCAL_PREFIX}.")
    info = lifecycle.running(home)
    if info is None:
        raise LocalCloudError(*_NOT_RUNNING)
    store = Store(home.database)
    for api in _APIS:
        store.put(SERVICE, f"{options.id}/{api}.googleapis.com", options.id, {}, {})
    for name in options.buckets:
        owner = (store.bucket(name) or {}).get("project")
        if owner not in (None, options.id):
            raise LocalCloudError(f"bucket {name} belongs to project {owner}.")
        Emulator(f"http://127.0.0.1:{info.storage_port}").create_bucket(options.id, name, "US")
        if owner is None:  # else it may be a stack's, with all that the stack says of it
            store.put(BUCKET, name, options.id, {}, {"name": name, "project": options.id})
    return 0


def _report(text: str) -> None:
    print(f"localgcp: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
