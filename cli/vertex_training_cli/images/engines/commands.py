"""Image engines docker, podman and buildah, run by their command lines.

Nothing is built as another user, and no daemon is started: what is there is used as it is. The
context is unpacked into a folder of its own, so that an edit in the checkout changes no build.

The local cloud can pull no base image. A Dockerfile names its base by digest, and a stand-in has
another one: so the builder gets what takes the place of that name, and the Dockerfile stays as it
is.
"""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from localgcp.containers import mirror
from localgcp.system import processes as processes_here
from vertex_training.errors import ImageBuildError
from vertex_training.images.context import PLATFORM
from vertex_training_cli.images import registry
from vertex_training_cli.images.engines import Build, WriteLog, option_pairs, processes

#: Seconds within which a daemon must answer.
DAEMON_TIMEOUT: Final = 10
#: Names of files in the folder of a build.
AUTH_FILE: Final = "auth.json"
LABELLED: Final = "Dockerfile"
#: Variable with buildah's isolation of RUN. The default here, chroot, needs no container runtime.
ISOLATION: Final = "BUILDAH_ISOLATION"
#: Variables without attestations, so that an image is a single manifest:
#: https://docs.docker.com/build/metadata/attestations/
ENVIRONMENT: Final = {"BUILDX_NO_DEFAULT_ATTESTATIONS": "1"}

#: Messages of engines for a full disk: of this machine, and of the registry.
FULL: Final = ("no space left on device", "507 Insufficient Storage")

#: Option that replaces an image name in FROM: buildah-build(1), podman-build(1).
OPTION: Final = "--build-context"
_FROM: Final = re.compile(r"^[ \t]*FROM[ \t]+(?:--\S+[ \t]+)*(\S+)", re.IGNORECASE | re.MULTILINE)
_ARG: Final = re.compile(r"^[ \t]*ARG[ \t]+(\w+)(?:=(\S*))?", re.IGNORECASE | re.MULTILINE)
_VARIABLE: Final = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
#: Any spelling of the name of an official image of Docker Hub.
_HUB: Final = re.compile(r"(?:(?:index\.)?docker\.io/)?(?:library/)?(?P<name>[^/]+)\Z")


@dataclass(frozen=True, slots=True)
class CommandEngine:
    """An engine program of this machine."""

    name: str
    """``docker``, ``podman`` or ``buildah``."""
    program: str
    """Path of the program."""

    def build(self, build: Build, write_log: WriteLog) -> str:
        """See ``Engine.build``."""
        at, path = registry.registry_of(build.image)
        with tempfile.TemporaryDirectory(dir=build.archive.parent) as work:
            folder = Path(work)
            context = folder / "context"
            _unpack(build, context)
            log = processes.LastLines(write_log)
            local = f"{at.address}/{path}:{build.tag}"
            deadline = processes.Deadline(build.timeout)
            bases = self._stand_ins(context / build.dockerfile, at, build.build_args)
            command = [*self._build(build, local, context), *stand_in_options(bases)]
            self._run("build", [*command, str(context)], log, deadline, build)
            if winner := at.digest_of(path, build.tag):
                write_log(
                    f"{build.reference} was pushed by another build in the meantime: using "
                    "that image."
                )
                return winner
            try:
                self._push(build, local, folder, at, log, deadline)
            except ImageBuildError:
                # With immutable tags the push of the second of two builds is refused.
                if winner := at.digest_of(path, build.tag):
                    return winner
                raise
        if digest := at.digest_of(path, build.tag):
            return digest
        text = (
            f"{build.name}: {self.name} pushed {local}, but the registry does not have this digest."
        )
        raise ImageBuildError(text, log.lines)

    def _build(self, build: Build, local: str, context: Path) -> list[str]:
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

    def _stand_ins(
        self, dockerfile: Path, at: registry.RegistryClient, build_args: Mapping[str, str]
    ) -> Mapping[str, str]:
        """Return base images with local substitutes; empty for an image in Google's registry."""
        if self.name == "docker" or not at.is_local:
            return {}
        return stand_ins(dockerfile, build_args)

    def _push(
        self, build: Build, local: str, folder: Path, at: registry.RegistryClient,
        log: processes.LastLines, deadline: processes.Deadline,
    ) -> None:  # fmt: skip
        """Push the image; docker uses its own credentials."""
        options, target = list[str](), [f"docker://{local}"]
        if self.name == "docker":
            target = []
        elif at.is_local:
            options = ["--tls-verify=false"]
        elif token := at.token():
            _write_credentials(folder / AUTH_FILE, at.address, token)
            options = ["--authfile", str(folder / AUTH_FILE)]
        command = [self.program, "push", *options, local, *target]
        self._run("push", command, log, deadline, build)

    def _run(
        self, step: str, command: Sequence[str], log: processes.LastLines,
        deadline: processes.Deadline, build: Build,
    ) -> None:  # fmt: skip
        try:
            code = processes.run(command, {**os.environ, **ENVIRONMENT}, log, deadline)
        except TimeoutError:
            text = f"{build.name}: the {step} took longer than {build.timeout:g} s; cancelled."
            raise ImageBuildError(text, log.lines, "raise --timeout.") from None
        except OSError as failed:
            text = f"{build.name}: cannot run {self.program}: {failed.strerror}."
            raise ImageBuildError(text) from None
        if code:
            text = f"{build.name}: the {step} of {self.name} ended with exit code {code}."
            raise ImageBuildError(text, log.lines, _hint(step, self.name, build, log.lines))


def find(name: str) -> CommandEngine | None:
    """Return the program ``name`` if it is installed and, for docker, its daemon responds."""
    program = shutil.which(name)
    if program is None:
        return None
    version = [program, "version", "--format", "{{.Server.Version}}"]
    if name == "docker" and not processes_here.succeeds(version, DAEMON_TIMEOUT):
        return None
    return CommandEngine(name, program)


def _with_labels(build: Build, dockerfile: Path, folder: Path) -> Path | None:
    """Return a Dockerfile with all labels in one instruction: buildah commits a layer for each.

    None if an instruction at its end would not be one of the stage that is built.
    """
    text = dockerfile.read_text("utf-8", errors="surrogateescape").rstrip()
    if build.target or text.endswith(("\\", "`")) or "<<" in text:
        return None
    pairs = " ".join(f"{_quoted(key)}={_quoted(value)}" for key, value in build.labels.items())
    labelled = folder / LABELLED
    labelled.write_text(f"{text}\nLABEL {pairs}\n", "utf-8", errors="surrogateescape")
    return labelled


def _quoted(text: str) -> str:
    """Return ``text`` in double quotes, with Dockerfile expansions escaped."""
    return json.dumps(text, ensure_ascii=False).replace("$", "\\$")


def _unpack(build: Build, folder: Path) -> None:
    try:
        folder.mkdir()
        with tarfile.open(build.archive) as tar:
            tar.extractall(folder, filter="data")
    except (OSError, tarfile.TarError) as failed:
        text = f"{build.name}: cannot unpack the context: {failed}."
        raise ImageBuildError(text) from None


def _write_credentials(file: Path, host: str, token: str) -> None:
    """Write a credentials file that only this user can read; command arguments are not private."""
    secret = base64.b64encode(f"oauth2accesstoken:{token}".encode()).decode()
    with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
        json.dump({"auths": {host: {"auth": secret}}}, stream)


def _hint(step: str, name: str, build: Build, lines: Sequence[str]) -> str:
    if any(sign in line for sign in FULL for line in lines):
        return "free disk space, and run the command again"
    if step == "push" and name == "docker":
        return f"run `gcloud auth configure-docker {build.image.partition('/')[0]}`"
    return ""


def stand_ins(dockerfile: Path, build_args: Mapping[str, str] | None = None) -> Mapping[str, str]:
    """Return the full name of each base image of a Dockerfile that has a local substitute.

    Those without a digest need nothing: the mirror of the local cloud is asked for their tags.
    """
    try:
        text = dockerfile.read_text("utf-8", errors="replace")
    except OSError:
        return {}
    values = _arguments(text, build_args or {})
    named = {
        name: _VARIABLE.sub(lambda match: values.get(match[1] or match[2], ""), name)
        for name in _FROM.findall(text)
    }
    stood = {name: full for name, full in named.items() if _is_base(full, mirror.BASE)}
    return stood if stood and mirror.has_stand_in() else {}


def _arguments(text: str, build_args: Mapping[str, str]) -> Mapping[str, str]:
    """Return values of the ``ARG``s before ``FROM``: from the caller, else the file."""
    first = _FROM.search(text)
    declared = _ARG.findall(text[: first.start()] if first else "")
    return {name: build_args.get(name, value.strip("\"'")) for name, value in declared}


def _is_base(name: str, base: str) -> bool:
    tagged, _, digest = name.partition("@")
    match = _HUB.match(tagged)
    return match is not None and bool(digest) and f"docker.io/library/{match['name']}" == base


def stand_in_options(replaced: Mapping[str, str]) -> list[str]:
    """Return options of buildah and podman that replace base images."""
    names = dict.fromkeys([*replaced, *replaced.values()])
    return [part for name in names for part in (OPTION, f"{name}=docker-image://{mirror.BASE}")]
