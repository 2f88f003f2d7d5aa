"""A stand-in for the Python language host of the official Pulumi release.

The engine runs Python programs through the plugin ``pulumi-language-python``, which only the
official release contains. ``make setup`` uses this stand-in if the release cannot be downloaded.

The stand-in implements the gRPC service ``LanguageRuntime`` with the stubs of the SDK, and behaves
like the official host (``sdk/python/cmd/pulumi-language-python`` in github.com/pulumi/pulumi). The
toolchains ``uv`` and ``poetry``, the option ``typechecker``, debugging and code generation are not
supported: such a request fails with an error that names the option.

When every machine can download the official release, delete this folder, ``install_build`` of
``cli/vertex_training_cli/toolchain/pulumi_cli.py``, and all other uses of ``offline_engine`` and
``language_host``.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import os
import re
import selectors
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from concurrent import futures
from dataclasses import dataclass
from importlib.metadata import distributions
from pathlib import Path
from types import FrameType
from typing import Any, Final

if __name__ == "__main__":
    # Import only the stubs of the SDK. The rest of the SDK would double the time of each start.
    for _name in ("pulumi", "pulumi.runtime"):
        _spec = importlib.util.find_spec(_name)
        assert _spec
        sys.modules[_name] = importlib.util.module_from_spec(_spec)

import grpc
from google.protobuf import empty_pb2
from pulumi.runtime.proto import language_pb2, language_pb2_grpc, plugin_pb2

from vertex_training.plugin_callers import guard_servers

#: Version in the output of ``pulumi about``. The official host has other versions.
VERSION: Final = "0.1.0-standin"

#: Exit code of ``pulumi-language-python-exec`` after an error that the user has seen. A copy of
#: ``vertex_training.engine.MESSAGE_SHOWN``, because the host must not import the program.
MESSAGE_SHOWN: Final = 32
PARENT_POLL_SECONDS: Final = 1.0
STOP_SECONDS: Final = 2.0
#: Maximum size of a message in bytes, equal to the engine's limit.
MESSAGE_LIMIT: Final = 400 * 1024 * 1024

GRACE_SECONDS: Final = 2.0
#: Number of bytes of each read call.
CHUNK: Final = 65536


#: Supported keys of ``runtime.options``.
SERVED_OPTIONS: Final = {"virtualenv", "toolchain"}
#: Packages whose names begin with pulumi- but that have no plugin. The official host has this list.
WITHOUT_PLUGIN: Final = {"pulumi-policy", "pulumi-esc-sdk"}


class OptionError(Exception):
    """Error about a missing or unsupported value in ``runtime.options``."""


@dataclass(frozen=True)
class Environment:
    """The Python interpreter of a project. ``root`` is None without a ``virtualenv`` option."""

    python: str
    root: Path | None

    @classmethod
    def of(cls, project: Path, options: Mapping[str, Any], *, must_exist: bool) -> Environment:
        """Resolve ``runtime.options``, relative to the project. Raises OptionError."""
        toolchain = str(options.get("toolchain", "pip")).lower()
        if toolchain not in ("pip", "auto"):
            raise OptionError(
                "the stand-in language host does not support the runtime option toolchain: "
                f"{toolchain}. Hint: use pip, or install the official Pulumi release."
            )
        unknown = sorted(set(options) - SERVED_OPTIONS)
        if unknown:
            raise OptionError(
                "the stand-in language host does not support the runtime option "
                f"{unknown[0]}. Hint: remove the option, or install the official Pulumi release."
            )
        virtualenv = str(options.get("virtualenv", ""))
        if not virtualenv:
            ambient = os.environ.get("PULUMI_PYTHON_CMD") or "python3"
            return cls(shutil.which(ambient) or ambient, None)
        root = project / virtualenv
        if must_exist and not (root / "bin" / "python").is_file():
            raise OptionError(
                f"The 'virtualenv' option is set to {virtualenv!r}, but {str(root)!r} is not a "
                "virtual environment. Hint: create the environment (here: `make setup`)."
            )
        return cls(str(root / "bin" / "python"), root)

    def activate(self, variables: dict[str, str]) -> dict[str, str]:
        """Return ``variables`` with the changes that ``source bin/activate`` makes."""
        if self.root is None:
            return variables
        activated = {k: v for k, v in variables.items() if k != "PYTHONHOME"}
        bin_folder = str(self.root / "bin")
        path = variables.get("PATH", os.defpath)
        if path.split(os.pathsep)[0] != bin_folder:
            path = bin_folder + os.pathsep + path
        return activated | {"PATH": path, "VIRTUAL_ENV": str(self.root)}

    def site_packages(self) -> list[Path]:
        """Return the folders that contain this interpreter's packages."""
        if self.root is not None:
            return sorted(self.root.glob("lib/python*/site-packages"))
        script = "import json, sys; print(json.dumps([p for p in sys.path if p]))"
        answer = subprocess.run(
            [self.python, "-c", script], capture_output=True, text=True, check=True
        )
        return [Path(folder) for folder in json.loads(answer.stdout)]

    def install_commands(self, program: Path) -> list[list[str]]:
        """Return the commands of ``pulumi install``, in order."""
        commands: list[list[str]] = []
        if self.root is not None and not Path(self.python).is_file():
            commands.append(["python3", "-m", "venv", str(self.root)])
        requirements = program / "requirements.txt"
        if requirements.is_file():
            commands.append([self.python, "-m", "pip", "install", "-r", str(requirements)])
        return commands


PRE_RELEASE: Final = {"a": "alpha", "b": "beta", "rc": "rc"}


def plugin_version(package_version: str) -> str | None:
    """Return the plugin's semantic version for a package's PEP 440 version, or None.

    The conversion is that of the official host: 1.0 becomes 1.0.0, 1.2.3a4 becomes 1.2.3-alpha.4,
    and 1.2.3.post4.dev5 becomes 1.2.3+post4dev5.
    """
    match = re.fullmatch(
        r"(\d+(?:\.\d+)*)(?:(a|b|rc)(\d+))?(?:\.(post\d+))?(?:\.(dev\d+))?", package_version
    )
    if not match:
        return None
    release, stage, number, post, dev = match.groups()
    parts = release.split(".")
    version = ".".join(parts + ["0"] * (3 - len(parts)))
    if stage:
        version += f"-{PRE_RELEASE[stage]}.{number}"
    return version + (f"+{post or ''}{dev or ''}" if post or dev else "")


def plugins_of(site_packages: Iterable[Path]) -> list[plugin_pb2.PackageDependency]:
    """Return the plugins of the installed Pulumi packages, by the official host's rules.

    A Pulumi package contains a pulumi-plugin.json, or its name begins with pulumi-. The file takes
    precedence.
    """
    plugins: dict[str, plugin_pb2.PackageDependency] = {}
    for folder in site_packages:
        for package in distributions(path=[str(folder)]):
            name = re.sub(r"[-_.]+", "-", package.metadata["Name"]).lower()
            described = folder / name.replace("-", "_") / "pulumi-plugin.json"
            if name in WITHOUT_PLUGIN or not (described.is_file() or name.startswith("pulumi-")):
                continue
            data: dict[str, Any] = {"resource": True}
            if described.is_file():
                data = json.loads(described.read_text())
            version = data.get("version") or plugin_version(package.version)
            if data.get("resource") and version:
                plugin = data.get("name") or name.removeprefix("pulumi-")
                plugins[plugin] = plugin_pb2.PackageDependency(
                    name=plugin,
                    version="v" + version.removeprefix("v"),
                    kind="resource",
                    server=data.get("server") or "",
                )
    return [plugins[name] for name in sorted(plugins)]


class Children:
    """The running child processes of this host. All children end with the host."""

    def __init__(self) -> None:
        self._running: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def start(
        self,
        command: list[str],
        context: grpc.ServicerContext,
        *,
        env: Mapping[str, str],
        cwd: str | None = None,
        piped: bool = False,
    ) -> Iterator[subprocess.Popen[bytes]]:
        """Run ``command`` until the block ends, the engine cancels the call, or the host stops.

        The child inherits the output streams. If ``piped`` is true, ``output`` reads them instead.
        The child has its own process group, so that an interrupt of the engine does not reach it.
        """
        pipe = subprocess.PIPE if piped else None
        process: subprocess.Popen[bytes] = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=pipe,
            stderr=pipe,
            cwd=cwd,
            env=env,
            process_group=0,
        )
        with self._lock:
            self._running.add(process)
        if not context.add_callback(lambda: _end(process)):
            _end(process)  # the call was cancelled before this line
        try:
            yield process
        finally:
            with self._lock:
                self._running.discard(process)
            _end(process)

    def end_all(self) -> None:
        """End all running children."""
        with self._lock:
            running = list(self._running)
        for process in running:
            _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is not None:
        return
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE_SECONDS)
            return


def output(process: subprocess.Popen[bytes]) -> Iterator[tuple[str, bytes]]:
    """Yield pairs of ("stdout" | "stderr", bytes) in order of arrival, until both are closed."""
    with selectors.DefaultSelector() as selector:
        for name in ("stdout", "stderr"):
            selector.register(getattr(process, name), selectors.EVENT_READ, name)
        while selector.get_map():
            for key, _ in selector.select():
                if data := os.read(key.fd, CHUNK):
                    yield key.data, data
                else:
                    selector.unregister(key.fileobj)


class LanguageHost(language_pb2_grpc.LanguageRuntimeServicer):
    """The service for ``runtime: python`` in Pulumi.yaml and PulumiPolicy.yaml."""

    def __init__(self, engine: str, executor: str, tracing: str) -> None:
        self._engine = engine
        self._executor = executor
        self._tracing = tracing
        self.children = Children()

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
        packages = plugins_of(_environment(request.info, context).site_packages())
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

    def Run(
        self, request: language_pb2.RunRequest, context: grpc.ServicerContext
    ) -> language_pb2.RunResponse:
        """Run the program until the program ends. The program inherits the output streams."""
        environment = _environment(request.info, context)
        if request.attach_debugger:
            return language_pb2.RunResponse(error="the stand-in language host has no debugger")
        config = {
            "PULUMI_CONFIG": json.dumps(dict(request.config)),
            "PULUMI_CONFIG_SECRET_KEYS": json.dumps(list(request.configSecretKeys)),
        }
        variables = environment.activate({**os.environ, **config})
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
        """Run a plugin or a policy pack. Stream its output, then its exit code."""
        environment = _environment(request.info, context, plugin=True)
        program = request.info.program_directory
        if request.kind == "analyzer":
            arguments, folder = ["-m", "pulumi.policy", *request.args, program], program
        else:
            arguments, folder = [program, *request.args], request.pwd
        variables = dict(item.split("=", 1) for item in request.env if "=" in item)
        with self.children.start(
            [environment.python, "-u", *arguments],
            context,
            cwd=folder or None,
            env=environment.activate({**os.environ, **variables}),
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
        """Create the virtual environment and install requirements.txt, for ``pulumi install``."""
        folder = request.info.program_directory
        environment = _environment(
            request.info, context, must_exist=False, plugin=request.is_plugin
        )
        variables = environment.activate(dict(os.environ))
        for command in environment.install_commands(Path(folder)):
            with self.children.start(
                command, context, env=variables, cwd=folder, piped=True
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
    """Return the environment of the project's runtime options. Invalid options abort the call."""
    # As in the official host, a plugin or a policy pack has its environment in the folder `venv`.
    defaults = {"virtualenv": "venv"} if plugin else {}
    options = defaults | dict(info.options)
    try:
        return Environment.of(Path(info.root_directory), options, must_exist=must_exist)
    except OptionError as error:
        context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        raise  # not reached, since abort raises; the type checker needs it


def _exit_message(code: int) -> str:
    """Return the official host's error for a program that has exited; empty for success."""
    if code == 0:
        return ""
    if code < 0:
        return f"program was ended by signal {signal.Signals(-code).name}"
    return f"program exited with non-zero exit code: {code}"


def serve(host: LanguageHost) -> None:
    """Serve on a free loopback port until a signal arrives or the engine ends."""
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
    print(port, flush=True)  # the engine reads the port from standard output
    # A killed engine sends no signal, but this process then has another parent process.
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
        sys.exit("The program pulumi-language-python-exec does not exist. Run `make setup`.")
    guard_servers()
    engine = rest[-1] if rest and not rest[-1].startswith("-") else ""
    serve(LanguageHost(engine, executor, options.tracing))


if __name__ == "__main__":
    main()
