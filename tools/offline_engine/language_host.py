"""A stand-in for the Python language host of the official Pulumi release.

The engine runs Python programs through a plugin, ``pulumi-language-python``, that only the official
release contains: package registries have the engine's source without it. ``make setup`` prefers the
official release, uses this stand-in where the release cannot be downloaded, and prints which of the
two is installed.

The stand-in serves the gRPC service ``LanguageRuntime`` on the SDK's own stubs and behaves like the
official host (``sdk/python/cmd/pulumi-language-python`` in github.com/pulumi/pulumi): programs,
plugins and policy packs run in the virtual environment that ``runtime.options.virtualenv`` names,
their output is passed on unchanged, and their exit codes keep their meaning. The toolchains ``uv``
and ``poetry``, the option ``typechecker``, debugging and code generation are not supported; a
request for one fails with an error that names it.

Everything in this folder can be deleted on the day every machine reaches the official release. On
that day, change, the first two in ``cli/vertex_training_cli/toolchain``:

- ``pulumi_cli.py``: delete ``install_build``, its entry in ``SOURCES``, and the check for a script
  in ``_is_official_plugin``;
- ``layout.py``: ``ENGINE_VERSION`` is that of the ``pulumi`` pin in ``requirements/dev.txt``;
  ``offline_engine`` and ``BUILD_SOURCES`` go;
- ``localcloud/localgcp/lifecycle.py``: ``language_host`` in the names of plugins;
- ``pyproject.toml``: this folder in the settings of ruff, basedpyright and pytest;
- the tests ``tests/unit/tools/test_language_*.py`` and ``tests/e2e/test_language_host.py``, and the
  engine's part of ``tests/unit/tools/test_setup.py``;
- the stand-in's row in ``README.md`` and the engine's table in ``docs/maintainers.md``.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent import futures
from importlib.metadata import distributions
from pathlib import Path
from types import FrameType
from typing import Final

if __name__ == "__main__":
    # The stubs alone: the SDK around them takes half of a start, and each `pulumi` starts two.
    for _name in ("pulumi", "pulumi.runtime"):
        _found = importlib.util.find_spec(_name)
        assert _found
        sys.modules[_name] = importlib.util.module_from_spec(_found)

import grpc
from google.protobuf import empty_pb2
from pulumi.runtime.proto import language_pb2, language_pb2_grpc, plugin_pb2

from language_children import Children, output
from language_environment import Environment, OptionError, plugins_of
from vertex_training.plugin_callers import guard_servers

#: Shown by ``pulumi about``, so that this host is not taken for the official one.
VERSION: Final = "0.1.0-standin"

#: Exit code of ``pulumi-language-python-exec`` after an error that the user has seen. The host must
#: not import the program, so it copies ``vertex_training.engine.MESSAGE_SHOWN``; a test
#: compares them.
MESSAGE_SHOWN: Final = 32

PARENT_POLL_SECONDS: Final = 1.0
STOP_SECONDS: Final = 2.0
#: Bytes; the engine's own limit.
MESSAGE_LIMIT: Final = 400 * 1024 * 1024


class LanguageHost(language_pb2_grpc.LanguageRuntimeServicer):
    """The service for ``runtime: python`` in Pulumi.yaml and PulumiPolicy.yaml."""

    def __init__(self, engine: str, executor: str, tracing: str) -> None:
        self._engine = engine
        self._executor = executor
        self._tracing = tracing
        self.children = Children()

    # Calls before the engine runs anything.

    def Handshake(
        self, request: language_pb2.LanguageHandshakeRequest, context: grpc.ServicerContext
    ) -> language_pb2.LanguageHandshakeResponse:
        self._engine = request.engine_address
        return language_pb2.LanguageHandshakeResponse()

    def GetPluginInfo(
        self, request: empty_pb2.Empty, context: grpc.ServicerContext
    ) -> plugin_pb2.PluginInfo:
        return plugin_pb2.PluginInfo(version=VERSION)

    def About(
        self, request: language_pb2.AboutRequest, context: grpc.ServicerContext
    ) -> language_pb2.AboutResponse:
        environment = _environment(request.info, context)
        version = subprocess.run(
            [environment.python, "-c", "import platform; print(platform.python_version())"],
            capture_output=True,
            text=True,
            check=False,
        )
        return language_pb2.AboutResponse(
            executable=environment.python, version=version.stdout.strip()
        )

    def GetRequiredPackages(
        self, request: language_pb2.GetRequiredPackagesRequest, context: grpc.ServicerContext
    ) -> language_pb2.GetRequiredPackagesResponse:
        packages = [
            plugin_pb2.PackageDependency(
                name=plugin.name, version=plugin.version, kind="resource", server=plugin.server
            )
            for plugin in plugins_of(_environment(request.info, context).site_packages())
        ]
        return language_pb2.GetRequiredPackagesResponse(packages=packages)

    def GetProgramDependencies(
        self, request: language_pb2.GetProgramDependenciesRequest, context: grpc.ServicerContext
    ) -> language_pb2.GetProgramDependenciesResponse:
        path = [str(folder) for folder in _environment(request.info, context).site_packages()]
        packages = sorted((d.metadata["Name"], d.version) for d in distributions(path=path))
        return language_pb2.GetProgramDependenciesResponse(
            dependencies=[language_pb2.DependencyInfo(name=n, version=v) for n, v in packages]
        )

    def RuntimeOptionsPrompts(
        self, request: language_pb2.RuntimeOptionsRequest, context: grpc.ServicerContext
    ) -> language_pb2.RuntimeOptionsResponse:
        return language_pb2.RuntimeOptionsResponse()

    # Running programs and plugins.

    def Run(
        self, request: language_pb2.RunRequest, context: grpc.ServicerContext
    ) -> language_pb2.RunResponse:
        """Run the program until it ends. It inherits the output streams of this process."""
        environment = _environment(request.info, context)
        if request.attach_debugger:
            return language_pb2.RunResponse(error="the stand-in language host has no debugger")
        variables = environment.variables() | {
            "PULUMI_CONFIG": json.dumps(dict(request.config)),
            "PULUMI_CONFIG_SECRET_KEYS": json.dumps(list(request.configSecretKeys)),
        }
        command = [environment.python, "-u", self._executor, *self._program_arguments(request)]
        with self.children.start(command, context, env=variables) as program:
            code = program.wait()
        if code == MESSAGE_SHOWN:
            return language_pb2.RunResponse(bail=True)
        return language_pb2.RunResponse(error=_exit_message(code))

    def _program_arguments(self, request: language_pb2.RunRequest) -> list[str]:
        options = {
            "monitor": request.monitor_address,
            "engine": self._engine,
            "project": request.project,
            "root_directory": request.info.root_directory,
            "stack": request.stack,
            "pwd": request.pwd,
            "dry_run": "true" if request.dryRun else "false",
            "parallel": str(request.parallel),
            "tracing": self._tracing,
            "organization": request.organization,
        }
        flags = [part for name, value in options.items() if value for part in (f"--{name}", value)]
        return [*flags, request.info.entry_point or ".", *request.args]

    def RunPlugin(
        self, request: language_pb2.RunPluginRequest, context: grpc.ServicerContext
    ) -> Iterator[language_pb2.RunPluginResponse]:
        """Run a plugin or a policy pack: stream its output, then its exit code."""
        environment = _environment(request.info, context, plugin=True)
        program = request.info.program_directory
        if request.kind == "analyzer":
            arguments, folder = ["-m", "pulumi.policy", *request.args, program], program
        else:
            arguments, folder = [program, *request.args], request.pwd
        variables = environment.variables() | dict(
            item.split("=", 1) for item in request.env if "=" in item
        )
        with self.children.start(
            [environment.python, "-u", *arguments],
            context,
            cwd=folder or None,
            env=environment.activate(variables),
            piped=True,
        ) as plugin:
            for stream, data in output(plugin):
                if stream == "stdout":
                    yield language_pb2.RunPluginResponse(stdout=data)
                else:
                    yield language_pb2.RunPluginResponse(stderr=data)
            yield language_pb2.RunPluginResponse(exitcode=plugin.wait())

    def InstallDependencies(
        self, request: language_pb2.InstallDependenciesRequest, context: grpc.ServicerContext
    ) -> Iterator[language_pb2.InstallDependenciesResponse]:
        """Create the virtual environment and install requirements.txt, for ``pulumi install``.

        In the program's folder, where paths of requirements.txt begin.
        """
        folder = request.info.program_directory
        environment = _environment(
            request.info, context, must_exist=False, plugin=request.is_plugin
        )
        for command in environment.install_commands(Path(folder)):
            with self.children.start(
                command, context, env=environment.variables(), cwd=folder, piped=True
            ) as step:
                for stream, data in output(step):
                    yield language_pb2.InstallDependenciesResponse(**{stream: data})
                if code := step.wait():
                    context.abort(grpc.StatusCode.UNKNOWN, f"{' '.join(command)}: exit code {code}")

    def Cancel(self, request: empty_pb2.Empty, context: grpc.ServicerContext) -> empty_pb2.Empty:
        """Do nothing: the engine waits for the program, or cancels its call (see ``Children``)."""
        return empty_pb2.Empty()


def _environment(
    info: language_pb2.ProgramInfo,
    context: grpc.ServicerContext,
    *,
    must_exist: bool = True,
    plugin: bool = False,
) -> Environment:
    """Return the environment of the project's runtime options.

    Invalid options abort the call with a text that the engine shows unchanged. As in the official
    host, a program without a ``virtualenv`` runs in the ambient environment, a plugin or a policy
    pack in its folder ``venv``.
    """
    defaults = {"virtualenv": "venv"} if plugin else {}
    options = defaults | dict(info.options)
    try:
        return Environment.of(Path(info.root_directory), options, must_exist=must_exist)
    except OptionError as error:
        context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        raise  # not reached, since abort raises; the type checker needs it


def _exit_message(code: int) -> str:
    """Return the official host's error for a program that exited; empty for success."""
    if code == 0:
        return ""
    if code < 0:
        return f"program was ended by signal {signal.Signals(-code).name}"
    return f"program exited with non-zero exit code: {code}"


def serve(host: LanguageHost) -> None:
    """Serve on a free loopback port until a signal arrives or the engine ends.

    The engine reads the port from standard output.
    """
    stop = threading.Event()

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, on_signal)
    limits = [(f"grpc.max_{way}_message_length", MESSAGE_LIMIT) for way in ("receive", "send")]
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=16), options=limits)
    language_pb2_grpc.add_LanguageRuntimeServicer_to_server(host, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(port, flush=True)
    # A killed engine sends no signal. Its end shows as a change of the parent process.
    parent = os.getppid()
    while not stop.wait(PARENT_POLL_SECONDS) and os.getppid() == parent:
        pass
    host.children.end_all()
    server.stop(grace=0).wait(STOP_SECONDS)


def main() -> None:
    """Parse the engine's command line and serve."""
    parser = argparse.ArgumentParser(prog="pulumi-language-python", description=__doc__)
    parser.add_argument("--use-executor", "-use-executor", default=None)
    parser.add_argument("--tracing", "-tracing", default="")
    options, rest = parser.parse_known_args()
    executor = options.use_executor or shutil.which("pulumi-language-python-exec")
    if not executor or not Path(executor).is_file():
        sys.exit("pulumi-language-python-exec is missing beside this host. Run `make setup`.")
    guard_servers()
    engine = rest[-1] if rest and not rest[-1].startswith("-") else ""
    serve(LanguageHost(engine, executor, options.tracing))


if __name__ == "__main__":
    main()
