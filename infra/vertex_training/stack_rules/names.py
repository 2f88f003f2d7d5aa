"""Names and project numbers that Google Cloud would refuse, and keys of missing entries."""

from __future__ import annotations

import pathlib
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

import yaml

from vertex_training import naming
from vertex_training.customjob.protocol.ports import JOB_LABELS
from vertex_training.errors import Path, Problem, did_you_mean
from vertex_training.located_yaml.values import Loader
from vertex_training.plan import stack_grants
from vertex_training.settings import project_files, renames
from vertex_training.settings.model import SECTIONS, Settings
from vertex_training.settings.reader import STAND_INS

#: Labels that a stack file and a job file may give; the program's own come to them.
MOST_OWN_LABELS: Final = naming.MOST_LABELS - len(JOB_LABELS)
#: Section -> keys of what the stack makes there by itself.
OWN: Final = {
    ("buckets",): (naming.STAGING, naming.CONTROL),
    ("serviceAccounts",): (naming.IMAGE_BUILD,),
    ("network", "allow"): ("workers",),
}


def problems(settings: Settings) -> Iterator[Problem]:
    """Everything that does not hold."""
    yield from _buckets(settings)
    names = settings.names
    for key in settings.service_accounts:
        name = names.account_id(key)
        if not naming.ACCOUNT_ID.match(name):
            what = "makes an account id that is not 6 to 30 characters long"
            yield Problem(what, name, "choose another name", ("serviceAccounts", key))
    yield from _labels(settings)
    for path, members in stack_grants.member_lists(settings):
        for index, member in enumerate(members):
            if not naming.is_member(member):
                kinds = ", ".join(naming.MEMBER_KINDS[:3])
                hint = f"write {kinds} or a principal of workload identity"
                yield Problem("not an IAM member", member, hint, (*path, index))
    sections = {"buckets": settings.buckets, "secrets": settings.secrets}
    for section, entries in sections.items():
        for key, entry in entries.items():
            yield from _own_labels(entry.labels, (section, key, "labels"))
    yield from _image_builds(settings)
    yield from _unknown_keys(settings)
    yield from _jobs_of_one_name(settings)
    yield from _former_names(settings)


def _jobs_of_one_name(settings: Settings) -> Iterator[Problem]:
    """A job and a tuning job of one name would be one to every command and report."""
    taken: dict[str, str] = {}
    for key, job in settings.jobs.items():
        taken |= dict.fromkeys((key, renames.first_key(key, job)), key)
    for key, tuning in settings.tuning.items():
        names = (key, renames.first_key(key, tuning))
        if job := next((taken[name] for name in names if name in taken), ""):
            what, hint = f"job '{job}' has this name", "names of jobs and tuning jobs differ"
            yield Problem(what, key, hint, ("tuning", key))


def _labels(settings: Settings) -> Iterator[Problem]:
    for key, value in settings.labels.items():
        path = ("labels", key)
        if naming.is_own_label(key):
            yield Problem("the stack sets this label itself", value, "remove it", path)
        elif problem := naming.label_problem(key, value):
            yield Problem(problem, value, path=path)
    hint = f"at most {MOST_OWN_LABELS}: a resource has {naming.MOST_LABELS}, some are the stack's"
    if (count := len(settings.labels)) > MOST_OWN_LABELS:
        yield Problem("too many labels", str(count), hint, ("labels",))
        return
    for team in settings.teams:
        if (count := len(settings.labels_of(team))) > MOST_OWN_LABELS:
            what = "too many labels, with those of the stack"
            yield Problem(what, str(count), hint, ("teams", team, "labels"))


def _own_labels(labels: Mapping[str, str], path: Path) -> Iterator[Problem]:
    for key, value in labels.items():
        if naming.is_own_label(key):
            yield Problem("the stack sets this label itself", value, "remove it", (*path, key))
        elif problem := naming.label_problem(key, value):
            yield Problem(problem, value, path=(*path, key))


def _image_builds(settings: Settings) -> Iterator[Problem]:
    """The stack makes an account of its own where it builds images."""
    if not settings.builds_images:
        return
    if naming.IMAGE_BUILD in settings.service_accounts:
        path = ("serviceAccounts", naming.IMAGE_BUILD)
        yield Problem("the stack makes this account itself", naming.IMAGE_BUILD, "rename it", path)
    name = settings.names.account_id(naming.IMAGE_BUILD)
    if not naming.ACCOUNT_ID.match(name):
        what = "the account that builds images would have an id longer than 30 characters"
        yield Problem(what, name, "shorten the stack's name", ("images",))


def _buckets(settings: Settings) -> Iterator[Problem]:
    names = settings.names
    for key in settings.buckets:
        path = ("buckets", key)
        if key in (naming.STAGING, naming.CONTROL):
            yield Problem("the stack makes this bucket itself", key, "rename it", path)
        name = names.bucket(key)
        if not naming.BUCKET.match(name):
            yield Problem("makes a bucket name longer than 63", name, "shorten it", path)
        elif naming.BUCKET_GOOGLE.match(name):
            what = "makes a bucket name that begins with goog or contains google: it is refused"
            yield Problem(what, name, "choose another name", path)


def _unknown_keys(settings: Settings) -> Iterator[Problem]:
    """Keys that point at something the stack does not have."""
    for key, account in settings.service_accounts.items():
        for field, wanted, known in (
            ("reads", account.reads, settings.buckets),
            ("writes", account.writes, settings.buckets),
            ("secrets", account.secrets, settings.secrets),
        ):
            kind = "secret" if field == "secrets" else "bucket"
            for index, name in enumerate(wanted):
                path = ("serviceAccounts", key, field, index)
                if name in (naming.STAGING, naming.CONTROL) and kind == "bucket":
                    hint = "jobs get read access to packages by themselves, and none to records"
                    yield Problem("is a bucket of the stack's own", name, hint, path)
                elif name not in known:
                    what = f"this stack has no such {kind}"
                    yield Problem(what, name, did_you_mean(name, known), path)


def _former_names(settings: Settings) -> Iterator[Problem]:
    """``formerly``: every name that something was created under belongs to one entry."""
    for section in SECTIONS:
        keys = renames.first_keys(settings, section)
        counted = Counter(keys.values())
        for key, entry in settings.entries(section).items():
            former, path = entry.formerly, (*section, key, "formerly")
            if former is None:
                continue
            if former in OWN.get(section, ()):
                yield Problem("is what the stack makes itself", former, "remove it", path)
            elif former == key:
                yield Problem("is its name still", former, "remove it", path)
            elif getattr(entry, "existing", None):
                what = "the stack does not make what exists: its name is its owner's to change"
                yield Problem(what, former, "remove it", path)
            elif counted[former] > 1:
                other = next(k for k, first in keys.items() if first == former and k != key)
                what = f"is the name that {other} has in the cloud"
                hint = f"give {other} another key; or, if it had another name, its own formerly"
                yield Problem(what, former, hint, path)


#: Of a file that has no number yet, or an encrypted one; and what then stands in for it.
NOT_GIVEN: Final = ("", STAND_INS["projectNumber"])


def project_number_problems(settings: Settings, root: pathlib.Path) -> Iterator[Problem]:
    """Numbers that are not their project's. ``root`` has the stack files to compare with."""
    given: list[tuple[Path, str, str]] = [
        (("projectNumber",), settings.project, settings.project_number)
    ]
    if host := settings.shared_vpc:
        path = ("sharedVpc", "hostProjectNumber")
        given.append((path, host.host_project, host.host_project_number))
    others = list(_numbers(root, project_files.file_name(settings.stack)))
    for path, project, number in given:
        if number in NOT_GIVEN:
            continue  # nobody gave one: a component does without, and so does an unfinished file
        if naming.is_local(project):
            right = naming.local_project_number(project)
            if number != right:
                what = f"is not the number of {project} in the local cloud"
                yield Problem(what, number, f'write "{right}"', path)
            continue
        for file, other, its_number in others:
            if other == project and its_number not in (number, *NOT_GIVEN):
                what = f"{file} gives {project} the number {its_number}: one of them is wrong"
                hint = f"gcloud projects describe {project} --format='value(projectNumber)'"
                yield Problem(what, number, hint, path)
                break


def _numbers(root: pathlib.Path, own: str) -> Iterator[tuple[str, str, str]]:
    """(file, project, number) of every other stack file below ``root``, as far as readable."""
    for file in sorted([*root.glob("Pulumi.*.yaml"), *root.glob("bootstrap/Pulumi.*.yaml")]):
        if file.name == own and file.parent == root:
            continue
        config = config_of(file)
        by_key = {key.rpartition(":")[2]: value for key, value in config.items()}
        shown = file.relative_to(root).as_posix()
        yield shown, str(config.get("gcp:project")), _number(by_key.get("projectNumber"))
        host = by_key.get("sharedVpc")
        if isinstance(host, dict):
            yield shown, str(host.get("hostProject")), _number(host.get("hostProjectNumber"))


def _number(value: Any) -> str:
    return str(value) if isinstance(value, str | int) else ""


def config_of(file: pathlib.Path) -> dict[str, Any]:
    try:
        content = yaml.load(file.read_bytes(), Loader=Loader)
    except (OSError, yaml.YAMLError, UnicodeDecodeError):
        return {}  # its own stack's check reports it
    config = content.get("config") if isinstance(content, dict) else None
    return {str(key): value for key, value in config.items()} if isinstance(config, dict) else {}
