"""Files that an import changes or adds (job files, scripts, stack file), shown as a diff."""

from __future__ import annotations

import difflib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any, Final

import yaml

from localgcp.system.root_directory import RootDirectory
from vertex_training.errors import CommandError, ConfigError
from vertex_training.located_yaml.editing import block_style, set_value
from vertex_training.secret_rules.redaction import contains_secret
from vertex_training.settings.model import Settings
from vertex_training.settings.project_files import file_name
from vertex_training_cli.engine.paths import named_files
from vertex_training_cli.importing.imported import OPEN, ImportedJob, Scalar, free_key
from vertex_training_cli.importing.references import Adoption, StackEntries
from vertex_training_cli.importing.sources import SourceContents

#: Fields of a job file, in the order of an imported job file.
ORDER: Final = ("displayName", "labels", "encryptionSpec", "maxTrialCount", "parallelTrialCount",
                "maxFailedTrialCount", "studySpec", "serviceAccount",
                "baseOutputDirectory", "scheduling", "network", "pscInterfaceConfig",
                "workerPoolSpecs", "replicaCount", "machineSpec", "diskSpec",
                "containerSpec", "pythonPackageSpec",
                "imageUri", "executorImageUri", "packageUris", "pythonModule", "command", "args",
                "env", "name", "value")  # fmt: skip
PLACEHOLDER: Final = re.compile(r"<[A-Z0-9_]+>")
SECRET_IN_CODE: Final = (
    "contains a likely secret: read it from Secret Manager instead, before you commit"
)
#: Maximum size of a copied object in bytes. Upload larger objects with `gcloud storage cp`.
MAX_BYTES: Final = 16 * 1024 * 1024
SCHEMA_LINE: Final = "# yaml-language-server: $schema=job.schema.json\n"


@dataclass(slots=True)
class Proposal:
    """New contents of files by their paths in the checkout."""

    root: Path
    stack: str
    is_local: bool = False
    files: dict[str, str | bytes] = field(default_factory=dict)
    """Text, or the bytes of a copied file."""
    jobs: list[ImportedJob] = field(default_factory=list)
    job_files: list[str] = field(default_factory=list)
    named: list[str] = field(default_factory=list)
    """Files and folders of the checkout that the stack's files name."""
    remarks: list[str] = field(default_factory=list)
    shown: dict[str, bytes | None] = field(default_factory=dict)
    """Contents of the files at the time of the diff; None for a missing file."""

    def diff(self) -> Iterator[str]:
        """Yield the lines of a unified diff of all files."""
        for file, text in self.files.items():
            shown = self.shown[file] = _bytes_of(self.root / file)
            before = (shown or b"").decode(errors="replace").splitlines(keepends=True)
            old = file if before else "/dev/null"
            if isinstance(text, bytes):
                yield from (
                    f"--- {old}\n",
                    f"+++ {file}\n",
                    f"@@ a copy of {len(text):,} bytes @@\n",
                )
                continue
            yield from difflib.unified_diff(before, text.splitlines(keepends=True), old, file)

    def write(self) -> None:
        """Write the files; refuse if a file was changed after the diff."""
        for file, before in self.shown.items():
            if _bytes_of(self.root / file) != before:
                raise CommandError(
                    f"{file} was changed after the diff was shown. No file was written.",
                    "run the command again",
                )
        write_below(self.root, self.files)


def propose(
    source: SourceContents,
    folder: Path,
    root: Path,
    stack: str = "",
    settings: Settings | None = None,
) -> Proposal:
    """Return the files of an import: job files, scripts and, with a stack, the stack file."""
    proposal = Proposal(root, stack, bool(settings and settings.is_local))
    entries = StackEntries()
    existing = {path.stem for path in (root / "jobs").glob("*.yaml")}
    existing |= {*settings.submitted} if settings else set()
    for job in source.jobs:
        job.name = free_key(job.name, existing | {job.name for job in proposal.jobs})
        job.remarks += _destination(job, settings)
        _package(job, source, folder, proposal, settings, entries)
        adoption = Adoption(job, settings, entries)
        adoption.apply()
        proposal.files |= place_objects(job, adoption.objects, folder, root, entries)
        file = f"jobs/{job.name}.yaml"
        entries.add("tuning" if job.study else "jobs", job.name, {"file": file})
        proposal.files[file] = job_text(job)
        proposal.jobs.append(job)
        proposal.job_files.append(file)
    proposal.remarks = [*source.remarks]
    for file in proposal.files:
        if (root / file).exists():
            raise CommandError(f"{file} already exists.", "choose another --name")
    if settings is None:
        proposal.remarks.append(
            "this folder has no stack, so only job files are written. `vt init` creates a "
            "repository with a stack"
        )
        return proposal
    name = file_name(stack)
    proposal.named = [file for file in entries.object_files() if file not in proposal.files]
    proposal.named += named_files(settings)
    data = (root / name).read_bytes()
    for path, value in entries.added.items():
        try:
            data = set_value(data, ("config", *path), value, name)
        except ConfigError as failed:
            raise CommandError(str(failed.problems[0])) from None
    proposal.files[name] = data.decode()
    return proposal


def _destination(job: ImportedJob, settings: Settings | None) -> Iterator[str]:
    if job.region and (settings is None or job.region != settings.region):
        stays = f"; the stack runs jobs in {settings.region}" if settings else (
            "; a job file does not set the region")  # fmt: skip
        yield f"the source submits the job to {job.region}{stays}"
    if settings and job.project not in ("", settings.project) and not OPEN.search(job.project):
        yield (
            f"the source submits the job to project {job.project}; the stack uses "
            f"{settings.project}"
        )


def open_names(job: ImportedJob) -> list[str]:
    """Return the placeholders of a job, without duplicates."""
    text = json.dumps([job.study, job.spec, job.labels])
    return list(dict.fromkeys(PLACEHOLDER.findall(text)))


def place_objects(
    job: ImportedJob,
    objects: Mapping[str, set[str]],
    folder: Path,
    root: Path,
    entries: StackEntries,
) -> dict[str, bytes]:
    """Add files beside the source as objects of new buckets; return the copied files."""
    copies: dict[str, bytes] = {}
    for key, name in sorted((key, name) for key, names in objects.items() for name in names):
        path = _beside(folder, root, name)
        if path is None:
            job.remarks.append(
                f"the job reads object {name} of bucket '{key}', but no file {name} is beside the "
                f"source: copy the file to {name} beside the source, then import again"
            )
        elif path.is_relative_to(root.resolve()):
            entries.add_object(key, name, path.relative_to(root.resolve()).as_posix())
        elif contains_secret((data := path.read_bytes()).decode("utf-8", errors="replace")):
            job.remarks.append(
                f"the job reads {name}, which is not copied because it contains a likely secret"
            )
        else:
            copies[f"jobs/data/{key}/{name}"] = data
            entries.add_object(key, name, f"jobs/data/{key}/{name}")
    return copies


def _beside(folder: Path, root: Path, name: str) -> Path | None:
    """Return the file for an object; None if it is hidden, large, or behind a symbolic link."""
    if folder.resolve() == Path.home().resolve() != root.resolve():
        return None
    for path in (name, Path(name).name):
        status = RootDirectory(folder, refuse_git=True).status(path)
        hidden = any(part.startswith(".") for part in path.split("/"))
        if status and status.st_size <= MAX_BYTES and not hidden:
            return folder.resolve() / path
    return None


def _package(
    job: ImportedJob, source: SourceContents, folder: Path, proposal: Proposal,
    settings: Settings | None, entries: StackEntries,
) -> None:  # fmt: skip
    if not job.script:
        return
    stem = "".join(c if c.isalnum() else "_" for c in Path(job.script).stem)
    module = stem if stem.isidentifier() else f"task_{stem}"
    file = f"jobs/{job.name.replace('-', '_')}/{module}.py"
    code = _script(job.script, source, folder)
    if code is None:
        job.remarks.append(
            f"the script {job.script} does not exist beside the source: write the training "
            f"script to {file}, which is a placeholder"
        )
        code = f'raise SystemExit("{file} is a placeholder for the training script")\n'
    lines = "".join(f"{line}\n" for line in job.requirements)
    if contains_secret(f"{code}\n{lines}"):
        job.remarks.append(f"{file}, or its requirements, {SECRET_IN_CODE}")
    proposal.files[file] = code
    proposal.files |= {f"{file.removesuffix('.py')}.requirements.txt": lines} if lines else {}
    if settings is None:
        is_there = any("packageUris" in task for task in job.tasks("pythonPackageSpec"))
        of = "is in the client's bucket" if is_there else "must be built by a stack"
        job.remarks.append(f"the Python package of the job {of}; its script is {file}")
        return
    own = (key for key, p in settings.packages.items() if PurePath(p.path) == PurePath(file))
    key = next(own, "")
    if not key:
        key = free_key(job.name, {*settings.packages, *entries.keys("packages")})
        entries.add("packages", key, {"path": file})
    for task in job.tasks("pythonPackageSpec"):
        task |= {"packageUris": [f"${{packages.{key}}}"], "pythonModule": module}


def _script(script: str, source: SourceContents, folder: Path) -> str | None:
    for name, text in source.files.items():
        if Path(name).name == Path(script).name:
            return text
    try:
        content = RootDirectory(folder).read(script.removeprefix("./"))
        return None if content is None else content.decode()
    except (OSError, UnicodeDecodeError):
        return None


def job_text(job: ImportedJob) -> str:
    """Return the text of a job file: in REST form if the job has labels or a key, else gcloud's."""
    message: dict[str, Any] = job.spec
    if job.study:
        message = {**job.study, "trialJobSpec": job.spec}
    elif job.labels or job.encryption_key:
        message = {"jobSpec": job.spec}
    message |= {"labels": job.labels} if job.labels else {}
    if job.encryption_key:
        message |= {"encryptionSpec": {"kmsKeyName": job.encryption_key}}
    text = yaml.dump(
        _ordered(message), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100
    )
    return SCHEMA_LINE + text


def _ordered(value: Any) -> Any:
    if isinstance(value, dict):
        last = len(ORDER)
        places = {name: place for place, name in enumerate(ORDER)}
        keys = sorted(value, key=lambda key: places.get(key, last))
        return {key: _ordered(value[key]) for key in keys}
    return [_ordered(item) for item in value] if isinstance(value, list) else value


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 (PyYAML's name)
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002
        return super().increase_indent(flow, False)


def _scalar(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    if isinstance(text, Scalar):
        return dumper.represent_scalar(dumper.resolve(yaml.ScalarNode, text, (True, False)), text)
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=block_style(text, None))


_Dumper.add_representer(str, _scalar)
_Dumper.add_representer(Scalar, _scalar)


def _bytes_of(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


def write_below(root: Path, files: Mapping[str, str | bytes]) -> None:
    """Write files below ``root``, never through a symbolic link."""
    below = RootDirectory(root, refuse_git=True)
    for file, text in files.items():
        try:
            below.write(file, text.encode() if isinstance(text, str) else text)
        except OSError as failed:
            raise CommandError(f"{file}: {failed.strerror or failed}.") from None


def rehearsal(proposal: Proposal) -> tempfile.TemporaryDirectory[str]:
    """Return a temporary copy of the stack's files that includes the proposal, for checks."""
    folder = tempfile.TemporaryDirectory(prefix="vt-import-")
    copy = Path(folder.name)
    for path in proposal.root.glob("Pulumi*.yaml"):
        shutil.copy2(path, copy / path.name)
    for file in ("jobs", *proposal.named):
        source, target = proposal.root / file, copy / file
        if target.exists() or not source.exists():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, copy_function=_link, symlinks=True)
        else:
            _link(str(source), str(target))
    write_below(copy, proposal.files)
    return folder


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:
        shutil.copy2(source, target, follow_symlinks=False)
