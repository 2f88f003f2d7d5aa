"""Interface of engines that build images, and engines of this machine: docker, podman, buildah.

The local cloud cannot pull base images, and a Dockerfile names its base by digest. Options of the
build therefore replace the base image's name by a local substitute.
"""

from __future__ import annotations

import base64
import codecs
import collections
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, Protocol

import psutil

from localgcp.containers import registry
from localgcp.system.processes import ChildProcess, descendants, start_time, succeeds
from vertex_training.errors import CommandError, ImageBuildError
from vertex_training.images.context import PLATFORM
from vertex_training_cli.images.registry import RemoteImage, remote_image

#: Engines of this machine, by preference.
PROGRAMS: Final = ("docker", "podman", "buildah")
#: Default engine for images of Google Cloud projects.
SERVICE: Final = "cloud-build"
#: Function that writes a line of a log, without its line end.
WriteLog = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Build:
    """One image to build. Engines do not read the stack file or the checkout."""

    name: str
    """Key of the image in the stack file."""
    archive: Path
    """Tar archive of the context, without ignored files. Engines write to the archive's folder."""
    context: str
    """Folder of the context in the stack file, for messages."""
    dockerfile: str
    """Path of the Dockerfile inside the archive."""
    build_args: Mapping[str, str]
    target: str
    """Stage to build; empty for the last stage."""
    image: str
    """Full name without tag: ``REGION-docker.pkg.dev/PROJECT/REPOSITORY/NAME``."""
    tag: str
    """``context-`` and 32 hex digits: the tag to push under."""
    labels: Mapping[str, str]
    """Labels to add, such as ``org.opencontainers.image.revision``."""
    identity: str
    """64 hex digits that identify the context and the options of the build."""
    timeout: float
    """Maximum build time in seconds."""
    writes_cache: bool = False
    """True if later builds may use the layers of this build; only for reviewed code."""

    @property
    def reference(self) -> str:
        """Return ``IMAGE:TAG``."""
        return f"{self.image}:{self.tag}"


class Engine(Protocol):
    """Builds images and pushes them."""

    @property
    def name(self) -> str:
        """Return the engine's name for ``--engine``."""
        ...

    def build(self, build: Build, write_log: WriteLog) -> str:
        """Build for linux/amd64, push under ``build.tag``, and return the digest ``sha256:…``.

        If another build has pushed the tag in the meantime, return the digest of that build's
        image. KeyboardInterrupt cancels the build and is raised again. Failures raise
        ImageBuildError.
        """
        ...


def option_pairs(option: str, values: Mapping[str, str]) -> list[str]:
    """Return an option for each entry, sorted by key: ``--label a=b``."""
    return [part for key, value in sorted(values.items()) for part in (option, f"{key}={value}")]


#: Maximum response time of docker's daemon in seconds.
DAEMON_TIMEOUT: Final = 10
AUTH_FILE: Final = "auth.json"
LABELLED: Final = "Dockerfile"
#: Variable with buildah's isolation of RUN. The default, chroot, needs no container runtime.
ISOLATION: Final = "BUILDAH_ISOLATION"
#: Variables of engines. Without attestations, an image has a single manifest:
#: https://docs.docker.com/build/metadata/attestations/
ENVIRONMENT: Final = {"BUILDX_NO_DEFAULT_ATTESTATIONS": "1"}
#: Messages of engines if the disk of this machine or of the registry is full.
FULL: Final = ("no space left on device", "507 Insufficient Storage")
#: Option that replaces an image name in FROM: buildah-build(1), podman-build(1).
OPTION: Final = "--build-context"
_FROM: Final = re.compile(r"^[ \t]*FROM[ \t]+(?:--\S+[ \t]+)*(\S+)", re.IGNORECASE | re.MULTILINE)
_ARG: Final = re.compile(r"^[ \t]*ARG[ \t]+(\w+)(?:=(\S*))?", re.IGNORECASE | re.MULTILINE)
_VARIABLE: Final = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
#: Any spelling of the name of an official image of Docker Hub.
_HUB: Final = re.compile(r"(?:(?:index\.)?docker\.io/)?(?:library/)?(?P<name>[^/]+)\Z")
#: Maximum number of log lines in an error.
KEPT: Final = 20
#: Maximum length of a stored line.
MAX_LINE: Final = 2_000
#: Time between SIGTERM and SIGKILL, in seconds.
GRACE: Final = 5.0
#: Time between two reads of the output, in seconds.
_POLL: Final = 0.05
_BLOCK: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class CommandEngine:
    """An engine program of this machine."""

    name: str
    """``docker``, ``podman`` or ``buildah``."""
    program: str
    """Path of the program."""

    def build(self, build: Build, write_log: WriteLog) -> str:
        """Implement ``Engine.build``."""
        image = remote_image(build.image)
        with tempfile.TemporaryDirectory(dir=build.archive.parent) as work:
            folder = Path(work)
            context = folder / "context"
            try:
                context.mkdir()
                with tarfile.open(build.archive) as tar:
                    tar.extractall(context, filter="data")
            except (OSError, tarfile.TarError) as failed:
                text = f"{build.name}: cannot unpack the context: {failed}."
                raise ImageBuildError(text) from None
            log = LastLines(write_log)
            local = f"{image.name}:{build.tag}"
            deadline = Deadline(build.timeout)
            replaces = self.name != "docker" and image.is_local
            file = context / build.dockerfile
            bases = stand_ins(file, build.build_args) if replaces else {}
            command = [*self._build_command(build, local, context), *stand_in_options(bases)]
            self._run("build", [*command, str(context)], log, deadline, build)
            if winner := image.digest_of(build.tag):
                write_log(f"another build has pushed {build.reference}: this image is used.")
                return winner
            try:
                self._run("push", self._push_command(image, local, folder), log, deadline, build)
            except ImageBuildError:
                # With immutable tags, the registry refuses the push of a concurrent build.
                if winner := image.digest_of(build.tag):
                    return winner
                raise
        if digest := image.digest_of(build.tag):
            return digest
        text = (
            f"{build.name}: {self.name} pushed {local}, but the registry does not have this digest."
        )
        raise ImageBuildError(text, log.lines)

    def _build_command(self, build: Build, local: str, context: Path) -> list[str]:
        isolation = os.environ.get(ISOLATION) or "chroot"
        own = {
            "docker": [],
            "podman": ["--layers", "--force-rm"],
            "buildah": ["--layers", "--force-rm", "--network=host", f"--isolation={isolation}"],
        }
        file, labels = context / build.dockerfile, option_pairs("--label", build.labels)
        if self.name != "docker" and (labelled := _with_labels(build, file, context.parent)):
            file, labels = labelled, []
        options = [
            *("--platform", PLATFORM, "--file", str(file), "--tag", local),
            *option_pairs("--build-arg", build.build_args),
            *labels,
            *(("--target", build.target) if build.target else ()),
        ]
        return [self.program, "build", *own[self.name], *options]

    def _push_command(self, image: RemoteImage, local: str, folder: Path) -> list[str]:
        options, target = list[str](), [f"docker://{local}"]
        if self.name == "docker":
            target = []
        elif image.is_local:
            options = ["--tls-verify=false"]
        elif token := image.token():
            file = folder / AUTH_FILE  # Other users can read the arguments of a command.
            secret = base64.b64encode(f"oauth2accesstoken:{token}".encode()).decode()
            with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
                json.dump({"auths": {image.address: {"auth": secret}}}, stream)
            options = ["--authfile", str(file)]
        return [self.program, "push", *options, local, *target]

    def _run(
        self, step: str, command: Sequence[str], log: LastLines, deadline: Deadline, build: Build
    ) -> None:
        try:
            code = run(command, {**os.environ, **ENVIRONMENT}, log, deadline)
        except TimeoutError:
            text = f"{build.name}: the {step} was cancelled after {build.timeout:g} s."
            raise ImageBuildError(text, log.lines, "raise --timeout.") from None
        except OSError as failed:
            text = f"{build.name}: cannot run {self.program}: {failed.strerror}."
            raise ImageBuildError(text) from None
        if code:
            text = f"{build.name}: the {step} of {self.name} ended with exit code {code}."
            raise ImageBuildError(text, log.lines, _hint(step, self.name, build, log.lines))


def first_installed(*names: str) -> CommandEngine:
    """Return the first of these programs that is installed."""
    for name in names:
        if engine := find(name):
            return engine
    missing = "no engine that builds images is" if names[1:] else f"engine {names[0]} is not"
    raise CommandError(
        f"{missing} installed.", "install docker, podman or buildah (docs/container-images.md)."
    )


def find(name: str) -> CommandEngine | None:
    """Return the program ``name`` if it is installed and, for docker, its daemon responds."""
    program = shutil.which(name)
    if program is None:
        return None
    version = [program, "version", "--format", "{{.Server.Version}}"]
    if name == "docker" and not succeeds(version, DAEMON_TIMEOUT):
        return None
    return CommandEngine(name, program)


def _with_labels(build: Build, dockerfile: Path, folder: Path) -> Path | None:
    """Write a Dockerfile with all labels in one instruction: buildah commits a layer for each.

    Return None if an instruction at the end of the file would not belong to the built stage.
    """
    text = dockerfile.read_text("utf-8", errors="surrogateescape").rstrip()
    if build.target or text.endswith(("\\", "`")) or "<<" in text:
        return None

    def quoted(text: str) -> str:
        return json.dumps(text, ensure_ascii=False).replace("$", "\\$")

    pairs = " ".join(f"{quoted(key)}={quoted(value)}" for key, value in build.labels.items())
    labelled = folder / LABELLED
    labelled.write_text(f"{text}\nLABEL {pairs}\n", "utf-8", errors="surrogateescape")
    return labelled


def _hint(step: str, name: str, build: Build, lines: Sequence[str]) -> str:
    if any(sign in line for sign in FULL for line in lines):
        return "free disk space, and run the command again"
    if step == "push" and name == "docker":
        return f"run `gcloud auth configure-docker {build.image.partition('/')[0]}`"
    return ""


def stand_ins(dockerfile: Path, build_args: Mapping[str, str] | None = None) -> Mapping[str, str]:
    """Return the full name of each base image in a Dockerfile that has a local substitute."""
    try:
        text = dockerfile.read_text("utf-8", errors="replace")
    except OSError:
        return {}
    first = _FROM.search(text)
    declared = _ARG.findall(text[: first.start()] if first else "")
    values = {name: value.strip("\"'") for name, value in declared}
    values |= {name: text for name, text in (build_args or {}).items() if name in values}
    named = {
        name: _VARIABLE.sub(lambda match: values.get(match[1] or match[2], ""), name)
        for name in _FROM.findall(text)
    }
    stood = {name: full for name, full in named.items() if _is_base(full, registry.BASE)}
    return stood if stood and registry.has_stand_in() else {}


def _is_base(name: str, base: str) -> bool:
    tagged, _, digest = name.partition("@")
    match = _HUB.match(tagged)
    return match is not None and bool(digest) and f"docker.io/library/{match['name']}" == base


def stand_in_options(replaced: Mapping[str, str]) -> list[str]:
    """Return options of buildah and podman that replace base images."""
    names = dict.fromkeys([*replaced, *replaced.values()])
    return [part for name in names for part in (OPTION, f"{name}=docker-image://{registry.BASE}")]


class LastLines:
    """Writes lines to a log, and keeps the last lines for error messages."""

    def __init__(self, write_log: Callable[[str], None]) -> None:
        self._write_log = write_log
        self._kept: collections.deque[str] = collections.deque(maxlen=KEPT)

    def write(self, line: str) -> None:
        """Add a line without its line end."""
        self._kept.append(line[:MAX_LINE])
        self._write_log(line[:MAX_LINE])

    @property
    def lines(self) -> tuple[str, ...]:
        """Return the last lines, oldest first."""
        return tuple(self._kept)


class Deadline:
    """A point in time, ``seconds`` after its creation."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    @property
    def seconds_left(self) -> float:
        """Return the remaining seconds, at least 0."""
        return max(0.0, self._end - time.monotonic())


def run(command: Sequence[str], env: Mapping[str, str], log: LastLines, deadline: Deadline) -> int:
    """Run ``command`` until it ends, and return its exit code; raise TimeoutError at the deadline.

    The output goes through a file. A pipe would end the program with SIGPIPE if this process is
    killed, and would leave mounts and containers of the program behind.
    """
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            command,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C reaches this process alone, which then ends the group
        )
        lines = _Lines(output.fileno(), log)
        try:
            while True:
                with suppress(subprocess.TimeoutExpired):
                    code = process.wait(min(_POLL, deadline.seconds_left))
                    lines.write_new(final=True)
                    return code
                lines.write_new()
                if not deadline.seconds_left:
                    raise TimeoutError
        finally:
            _end(process)


class _Lines:
    def __init__(self, file: int, log: LastLines) -> None:
        self._file, self._log = file, log
        self._read, self._open = 0, ""
        utf8 = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._decoder = io.IncrementalNewlineDecoder(utf8, translate=True)

    def write_new(self, *, final: bool = False) -> None:
        while new := os.pread(self._file, _BLOCK, self._read):
            self._read += len(new)
            *lines, self._open = (self._open + self._decoder.decode(new)).split("\n")
            for line in lines:
                self._log.write(line)
            self._open = self._open[:MAX_LINE]
        if final and (last := self._open + self._decoder.decode(b"", final=True)):
            self._log.write(last)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the program's process group, children first: buildah then cleans up its mounts."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is None and (started := descendants(process.pid)):
            for descendant in started:
                with suppress(psutil.Error):
                    descendant.send_signal(number)
            with suppress(subprocess.TimeoutExpired):
                process.wait(GRACE)
    ChildProcess(process.pid, start_time(process.pid) or "gone", "engine").end(GRACE)
    with suppress(subprocess.TimeoutExpired):
        process.wait(GRACE)


def main(arguments: list[str]) -> int:
    """Build one image for the Cloud Build service of the local cloud, and return the exit code.

    ``python -m vertex_training_cli.images.programs IN OUT``: IN is a JSON file with the
    fields of ``Build``. The digest is written to OUT, the log to stdout. Exit code 1: not built.
    """
    request, result = map(Path, arguments)
    fields = json.loads(request.read_text(encoding="utf-8"))
    build = Build(**{**fields, "archive": Path(fields["archive"])})
    write_log = partial(print, flush=True)
    try:  # a program of this machine builds for every project
        digest = first_installed(*PROGRAMS).build(build, write_log)
    except CommandError as error:
        write_log(str(error))  # the last lines of an ImageBuildError are in the log already
        return 1
    result.write_text(digest, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
