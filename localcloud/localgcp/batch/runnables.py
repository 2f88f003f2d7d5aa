"""Processes and bucket mounts of runnables: containers, commands on this machine, and scripts.

Containers find buckets at ``mountPath``. Programs of this machine find mounts below ``/gcs`` if the
system supports it. Other mount paths are replaced by folders in words, variables and scripts.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from localgcp.batch.records import BatchJob
from localgcp.containers.engines import MOUNT, registry_path
from localgcp.errors import ImageError, PreparationError
from localgcp.inventory import resource_paths
from localgcp.inventory.store import IMAGE_READER, has_role
from localgcp.reads.secretmanager import API as SECRETS_API
from localgcp.reads.secretmanager import SECRET_READERS, find_version
from localgcp.runner import executors, hosts, refusals
from localgcp.runner.environment import Folders
from localgcp.runner.executors import (
    command_substitute,
    host_substitute,
    note_substitute,
    takes_nearest,
)
from localgcp.runner.gcsfuse import BucketCopies
from localgcp.runner.hosts import BucketView, Host
from localgcp.runner.programs import CloudHost, ContainerProgram, HostProgram, Program, Run
from localgcp.runner.replica import Launch
from localgcp.system.root_directory import make_folder
from localgcp.vertex.admission import Access

#: File on a machine that lists all machines (doc:batch/…, requireHostsFile).
HOSTS_FILE: Final = "/etc/cloudbatch-taskgroup-hosts"


class Volumes(BucketCopies):
    """Folders of all buckets that a job mounts; its tasks share them."""

    def __init__(self, job: BatchJob, cloud: CloudHost, report: Callable[[str], None]) -> None:
        folder = cloud.home.batch / job.uid
        access = Access(cloud.store, job.project, job.account)
        super().__init__(folder / "gcs", cloud, access, report)
        self.hosts_file = folder / "hosts"
        self._at = {
            volume["mountPath"].rstrip("/"): volume["gcs"]["remotePath"].strip("/")
            for volume in job.spec.get("volumes", [])
        }

    def prepare(self) -> None:
        """Copy the buckets into folders. Raises PreparationError if a bucket cannot be mounted."""
        make_folder(self.folder)
        for remote in dict.fromkeys(self._at.values()):
            bucket = remote.partition("/")[0]
            problem = f"gs://{bucket} cannot be mounted"
            if self.cloud.store.bucket(bucket) is None:
                raise PreparationError(f"{problem}: the bucket does not exist.")
            if not self.access.may_read(bucket):
                raise PreparationError(
                    f"{problem}: {self.access.account} does not have storage.objects.list "
                    "access. Grant roles/storage.objectUser on the bucket."
                )
            if bucket not in self.copied:
                self.copy(bucket)
            make_folder(self.folder / remote)

    def close(self) -> None:
        """Upload remaining files, and report files that the job wrote outside of all buckets."""
        if self.folder.is_dir() and (text := self.outside()):
            self.report(text)
        super().close()

    def of(self, container: Mapping[str, Any] | None) -> dict[str, Path]:
        """Return the mounts of a container by path; for a script (None), all mounts of the job."""
        on_machine = {path: self.folder / remote for path, remote in self._at.items()}
        if self.hosts_file.is_file():
            on_machine[HOSTS_FILE] = self.hosts_file
        if container is None:
            return on_machine
        if not container.get("volumes"):
            return {path: at for path, at in on_machine.items() if path != HOSTS_FILE}
        return dict(self._named(container["volumes"], on_machine))

    def _named(
        self, volumes: list[str], on_machine: Mapping[str, Path]
    ) -> Iterator[tuple[str, Path]]:
        for volume in volumes:
            source, _, rest = volume.partition(":")
            target = rest.partition(":")[0].rstrip("/") or source
            above = [path for path in on_machine if f"{source}/".startswith(f"{path}/")]
            if not above or ".." in source.split("/"):
                text = f"{source} does not exist on this machine."
                self.report(f"volume {volume} is ignored: {text}")
                continue
            path = max(above, key=len)
            local = on_machine[path] / source.removeprefix(path).strip("/")
            if local == self.hosts_file or local.resolve().is_relative_to(self.folder.resolve()):
                yield target, local

    def view(self, at: Mapping[str, Path]) -> BucketView | None:
        """Return the program's ``/gcs``; None if mount paths are replaced in texts instead."""
        if not hosts.has_mounts() or not any(self.is_gcs(*mount) for mount in at.items()):
            return None
        fixed = [bucket for bucket in self.copied if not self.access.may_create(bucket)]
        return BucketView(self.folder, fixed)

    def placed(self, text: str, at: Mapping[str, Path], view: BucketView | None) -> str:
        """Return the text with mount paths replaced by folders of this machine."""
        for path in sorted(at, key=len, reverse=True):
            if view is None or not self.is_gcs(path, at[path]):
                pattern = rf"(?<![\w./-]){re.escape(path)}(?![\w.-])"
                text = re.sub(pattern, lambda _, path=path: str(at[path]), text)
        return text

    def is_gcs(self, path: str, at: Path) -> bool:
        """Return whether the mount is a bucket below ``/gcs``."""
        return at.parent == self.folder and path == f"{MOUNT}/{at.name}"

    def gcs(self, at: Mapping[str, Path], empty: Path) -> Path:
        """Return the folder of ``/gcs``; an empty folder without a mount below ``/gcs``."""
        if any(self.is_gcs(*mount) for mount in at.items()):
            return self.folder
        empty.mkdir(exist_ok=True)
        return empty


_REPOSITORY: Final = re.compile(r"([a-z0-9-]+)-docker\.pkg\.dev/([^/]+)/([^/]+)/")
_ENV_FILE: Final = re.compile(r"(?:^|\s)--env-file[= ]/tmp/([\w-][\w.-]*)(?=\s|$)")
_SECRET: Final = re.compile(r"projects/([^/]+)/secrets/([^/]+)/versions/([^/]+)")


@dataclass(frozen=True)
class Machine:
    """Resources of one task's machine."""

    job: BatchJob
    volumes: Volumes
    folders: Folders
    host: Host
    run: Run
    """Runs the command that pulls an image."""

    @property
    def cloud(self) -> CloudHost:
        return self.volumes.cloud

    def report(self, text: str) -> None:
        """Write a line to the log of Batch's agent."""
        self.volumes.report(text)

    def prepare(
        self, index: int, runnable: Mapping[str, Any], service: Mapping[str, str], name: str
    ) -> tuple[Program, Launch]:
        """Return the program and process of a runnable; ``service`` has Batch's own variables.

        Raises PreparationError and CommandNotFoundError.
        """
        container = runnable.get("container")
        at = self.volumes.of(container)
        view = self.volumes.view(at)
        variables = self._variables(runnable)
        if HOSTS_FILE in at:
            service = {**service, "BATCH_HOSTS_FILE": HOSTS_FILE}
        if container is not None:
            for field in ("options", "username", "blockExternalNetwork", "enableImageStreaming"):
                if container.get(field):
                    image = container["imageUri"]
                    self.report(f"the local cloud ignores container.{field} of {image}")
            variables = {**self._env_file(container), **variables}
            if registry_path(container["imageUri"]):
                program = self._image(container, name, at)
                return program, program.launch(service, variables)
        place = {key: self.volumes.placed(value, at, view) for key, value in variables.items()}
        service = {key: self.volumes.placed(value, at, view) for key, value in service.items()}
        if container is None:
            words, path = self._script(index, runnable["script"], at), ""
        else:
            words, path = self._command(container)
        words = [_unexpanded(self.volumes.placed(word, at, view)) for word in words]
        path = os.pathsep.join(filter(None, [path, os.environ.get("PATH", os.defpath)]))
        folders, mounted = self.folders, view is not None
        program = HostProgram(words, path, folders, self.cloud.storage_url, own_mount=mounted)
        made = program.launch(service, place)
        file, work = self.volumes.hosts_file, self.folders.work
        argv = hosts.command_on(self.host, file, made.argv, made.env, work=work, buckets=view)
        return program, replace(made, argv=argv)

    def _image(
        self, container: Mapping[str, Any], name: str, at: Mapping[str, Path]
    ) -> ContainerProgram:
        image, engine = container["imageUri"], self.cloud.containers.engine
        match = _REPOSITORY.match(image)
        assert match is not None  # The image belongs to a local project.
        place = f"projects/{match[2]}/locations/{match[1]}/repositories/{match[3]}"
        account = self.job.account
        if not has_role(self.cloud.store, account, IMAGE_READER, f"projects/{match[2]}", place):
            text = f"{account} does not have artifactregistry.repositories.downloadArtifacts"
            raise ImageError(f"{image} cannot be pulled: {text} on {place}.")
        if engine is None:
            raise ImageError(f"{image} cannot run: this machine has no container engine.")
        gcs = self.volumes.gcs(at, self.folders.work.with_name("no-gcs"))
        task = {"imageUri": image, "args": [*map(_unexpanded, container.get("commands", []))]}
        if container.get("entrypoint"):
            task["command"] = [_unexpanded(container["entrypoint"])]
        others = {path: at[path] for path in at if not self.volumes.is_gcs(path, at[path])}
        return ContainerProgram(
            self.cloud.containers,
            engine,
            task,
            name=name,
            folders=replace(self.folders, gcs=gcs),
            storage_url=self.cloud.storage_url,
            run=self.run,
            volumes=others,
        )

    def _command(self, container: Mapping[str, Any]) -> tuple[list[str], str]:
        image = container["imageUri"]
        words = [*filter(None, [container.get("entrypoint", "")]), *container.get("commands", [])]
        if not words:
            raise PreparationError(refusals.no_command(image, "container.commands"))
        executor = executors.for_image(image, nearest=takes_nearest(self.cloud.home))
        path = ""
        if executor:
            path = str(executors.environment(executor, self.report) / "bin")
        folder = self.cloud.home.batch / self.job.uid
        note_substitute(folder, host_substitute(image))
        self.report(command_substitute(image, executor))
        return words, path

    def _script(self, index: int, script: Mapping[str, str], at: Mapping[str, Path]) -> list[str]:
        """Write a script's file; return the interpreter and the file.

        The file itself is not executed: while a child process of another thread has the file open
        for writing, exec fails with "Text file busy".
        """
        text = self.volumes.placed(script["text"], at, self.volumes.view(at))
        file = self.folders.work.with_name(f"script-{index}")
        file.write_text(text, "utf-8")
        return [*_interpreter(text.partition("\n")[0]), str(file)]

    def _variables(self, runnable: Mapping[str, Any]) -> dict[str, str]:
        variables: dict[str, str] = {}
        own = runnable.get("environment", {})
        variables |= self.job.spec.get("environments", {})
        for environment in (self.job.spec.get("environment", {}), own):
            variables |= environment.get("variables", {})
            for name, secret in environment.get("secretVariables", {}).items():
                variables[name] = self._secret(secret)
        return variables

    def _secret(self, name: str) -> str:
        match = _SECRET.fullmatch(name)
        assert match is not None  # The name was checked when the job was created.
        secret, version = match[2], match[3]
        project = resource_paths.project_id(self.cloud.store, match[1]) or match[1]
        if not self.cloud.store.service_enabled(project, SECRETS_API):
            raise PreparationError(f"{name} cannot be read: {SECRETS_API} is not enabled.")
        member = f"serviceAccount:{self.job.account}"
        places = (f"projects/{project}/secrets/{secret}", f"projects/{project}")
        held = [self.cloud.store.roles(place, member) for place in places]
        if all(map(SECRET_READERS.isdisjoint, held)):
            text = f"Permission 'secretmanager.versions.access' denied for resource '{name}'"
            account = f"The job runs as {self.job.account}."
            raise PreparationError(f"{text} (or it may not exist). {account}")
        resource = find_version(self.cloud.store, self.cloud.home.secrets, project, secret, version)
        if resource is None:
            hint = f"Set a value for the secret: vt local secret set {secret}"
            raise PreparationError(f"Secret Version [{name}] not found. {hint}")
        try:
            return resource[1].decode()
        except UnicodeDecodeError:
            text = f"{name} is not UTF-8 text, so it cannot be an environment variable."
            raise PreparationError(text) from None

    def _env_file(self, container: Mapping[str, Any]) -> dict[str, str]:
        """Return the variables of ``--env-file=/tmp/…``, a file that an earlier script wrote."""
        match = _ENV_FILE.search(container.get("options", ""))
        if match is None:
            return {}
        try:
            lines = (self.folders.tmp / match[1]).read_text("utf-8").splitlines()
        except OSError as error:
            text = f"cannot read --env-file=/tmp/{match[1]}: {error.strerror}"
            raise PreparationError(text) from None
        pairs = (line.partition("=") for line in lines if not line.startswith("#"))
        return {name: value for name, is_set, value in pairs if is_set}


def _interpreter(first_line: str) -> list[str]:
    """Parse a shebang line like the kernel; without a shebang line, return ``/bin/sh``.

    >>> _interpreter("#!/bin/bash -e -u"), _interpreter("#!python"), _interpreter("echo")
    (['/bin/bash', '-e -u'], ['./python'], ['/bin/sh'])
    """
    line = re.match(r"#![ \t]*([^ \t\n\0]+)[ \t]*([^\n\0]*)", first_line)
    if line is None:
        return ["/bin/sh"]
    program, argument = line[1], line[2].rstrip(" \t")
    path = program if os.sep in program else f".{os.sep}{program}"
    return [path, argument] if argument else [path]


def _unexpanded(word: str) -> str:
    """Escape ``$(VAR)``: Batch does not expand it, but the local runner does."""
    return re.sub(r"\$\((\w+)\)", r"$$(\1)", word)
