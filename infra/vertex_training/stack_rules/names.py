"""Rules about invalid, duplicate and unknown names, numbers and labels."""

from __future__ import annotations

import pathlib
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from typing import Any, Final

from pydantic.alias_generators import to_camel

from vertex_training import naming
from vertex_training.catalog import machines
from vertex_training.customjob.protocol.ports import JOB_LABELS
from vertex_training.errors import Path, Problem, did_you_mean
from vertex_training.plan import grants
from vertex_training.settings import project_files, reader
from vertex_training.settings.model import SECTIONS, Bucket, Secret, ServiceAccount, Settings
from vertex_training.settings.network import IpRange, Reservation
from vertex_training.settings.reader import STAND_INS
from vertex_training.settings.stack_files import readable_config
from vertex_training.stack_rules import StackFile, file_rule, rule

#: Number of labels that a stack file and a job file may set, in addition to the program's labels.
MOST_OWN_LABELS: Final = naming.MOST_LABELS - len(JOB_LABELS)
#: Section -> keys of resources that the stack creates by itself.
OWN: Final = {
    ("buckets",): (naming.STAGING, naming.CONTROL),
    ("serviceAccounts",): (naming.IMAGE_BUILD,),
    ("network", "allow"): ("workers",),
}


@rule()
def bucket_names(settings: Settings) -> Iterator[Problem]:
    """Check that bucket names are valid and not reserved by the stack."""
    names = settings.names
    for key in settings.buckets:
        path = ("buckets", key)
        if key in (naming.STAGING, naming.CONTROL):
            what = "the stack reserves this key for its own bucket"
            yield Problem(what, key, "choose another key", path)
        name = names.bucket(key)
        if settings.buckets[key].existing:
            continue
        if not naming.BUCKET.match(name):
            what = "the bucket name is longer than 63 characters"
            yield Problem(what, name, "shorten the key", path)
        elif naming.BUCKET_GOOGLE.match(name):
            what = "Cloud Storage refuses bucket names that begin with goog or contain google"
            yield Problem(what, name, "choose another key", path)


@rule()
def account_names(settings: Settings) -> Iterator[Problem]:
    """Check that ids of service accounts are valid."""
    names = settings.names
    for key in settings.service_accounts:
        name = names.account_id(key)
        if not naming.ACCOUNT_ID.match(name):
            what = "the account id must have 6 to 30 characters"
            yield Problem(what, name, "choose another key", ("serviceAccounts", key))


@rule()
def stack_labels(settings: Settings) -> Iterator[Problem]:
    """Check the labels of the stack, and their number together with the labels of each team."""
    yield from label_problems(settings.labels, ("labels",))
    most_of_all = f"a resource can have {naming.MOST_LABELS}, some set by the stack"
    hint = f"keep at most {MOST_OWN_LABELS}: {most_of_all}"
    if (count := len(settings.labels)) > MOST_OWN_LABELS:
        yield Problem("the stack has too many labels", str(count), hint, ("labels",))
        return
    for team in settings.teams:
        if (count := len(settings.labels_of(team))) > MOST_OWN_LABELS:
            what = "this team has too many labels, including the stack's"
            yield Problem(what, str(count), hint, ("teams", team, "labels"))


def label_problems(
    labels: Mapping[str, str], path: Path, others: Container[str] = ()
) -> Iterator[Problem]:
    """Yield invalid labels, labels that the stack sets itself, and labels in ``others``."""
    for key, value in labels.items():
        if naming.is_own_label(key) or key in others:
            what = "the stack sets this label itself"
            yield Problem(what, value, "remove the label", (*path, key))
        elif problem := naming.label_problem(key, value):
            yield Problem(problem, value, path=(*path, key))


@rule()
def member_forms(settings: Settings) -> Iterator[Problem]:
    """Check that members have a form that IAM accepts."""
    for path, members in grants.member_lists(settings):
        for index, member in enumerate(members):
            if not naming.is_member(member):
                kinds = ", ".join(naming.MEMBER_KINDS[:3])
                hint = f"write {kinds} or a principal of workload identity"
                yield Problem("this text is not an IAM member", member, hint, (*path, index))


@rule("warning")
def members_in_other_case(settings: Settings) -> Iterator[Problem]:
    """Warn about members that differ only in letter case, which IAM treats as the same member."""
    for path, members in grants.member_lists(settings):
        seen = set[str]()
        for index, member in enumerate(members):
            same = member.lower() if "://" not in member else member
            if same in seen and member not in members[:index]:
                what = (
                    "this member differs from an earlier entry only in upper and lower case: "
                    "IAM revokes the role of both if either entry is removed"
                )
                yield Problem(what, member, f"write only {same}", (*path, index))
            seen.add(same)


#: Settings of the provider that do not apply to jobs -> replacement for jobs.
_OF_PROVIDER: Final = {
    "defaultLabels": "use vertex-training:labels, which jobs get too",
    "billingProject": "remove the setting: gcp:project pays for jobs",
    "deletionPolicy": "use onDelete of a job",
    "requestReason": "to record a reason in the audit log, use labels of the job",
    "vertexAiCustomEndpoint": "remove the setting: jobs use the API endpoint of gcp:region",
}


@file_rule("warning")
def provider_settings(file: StackFile) -> Iterator[Problem]:
    """Warn about settings of the ``gcp`` provider that have no effect on jobs."""
    own = readable_config(file.root / project_files.file_name(file.settings.stack))
    defaults = readable_config(file.root / "Pulumi.yaml")
    for key, hint in _OF_PROVIDER.items():
        name = f"gcp:{key}"
        if name in own or name in defaults:
            where = "" if name in own else " (set in Pulumi.yaml)"
            what = f"this setting of the gcp provider{where} does not apply to jobs"
            yield Problem(what, hint=hint, path=(name,))


@rule()
def entry_labels(settings: Settings) -> Iterator[Problem]:
    """Check the labels of buckets and secrets."""
    sections = {"buckets": settings.buckets, "secrets": settings.secrets}
    for section, entries in sections.items():
        for key, entry in entries.items():
            yield from label_problems(entry.labels, (section, key, "labels"))


@rule()
def jobs_of_one_name(settings: Settings) -> Iterator[Problem]:
    """Check that no tuning job has a job's name: commands could not distinguish them."""
    taken: dict[str, str] = {}
    for key, job in settings.jobs.items():
        taken |= dict.fromkeys((key, reader.first_key(key, job)), key)
    for key, tuning in settings.tuning.items():
        names = (key, reader.first_key(key, tuning))
        if job := next((taken[name] for name in names if name in taken), ""):
            what, hint = f"job '{job}' already uses this name", "rename the tuning job"
            yield Problem(what, key, hint, ("tuning", key))


@rule()
def image_builds(settings: Settings) -> Iterator[Problem]:
    """Check the account with which the stack builds images."""
    if not settings.builds_images:
        return
    if (key := naming.IMAGE_BUILD) in settings.service_accounts:
        what, path = "the stack reserves this key for its own account", ("serviceAccounts", key)
        yield Problem(what, key, "choose another key", path)
    name = settings.names.account_id(key)
    if not naming.ACCOUNT_ID.match(name):
        what = "the id of the account that builds images is longer than 30 characters"
        yield Problem(what, name, "shorten the stack's name", ("images",))


@rule()
def unknown_keys(settings: Settings) -> Iterator[Problem]:
    """Yield buckets and secrets that accounts name but the stack does not declare."""
    for path, name, _, known in used_entries(settings):
        kind = "secret" if path[2] == "secrets" else "bucket"
        if name in (naming.STAGING, naming.CONTROL) and kind == "bucket":
            hint = "remove the key: jobs can read packages, but must not read job records"
            yield Problem("this bucket belongs to the stack itself", name, hint, path)
        elif name not in known:
            yield Problem(f"this stack has no such {kind}", name, did_you_mean(name, known), path)


def used_entries(
    settings: Settings,
) -> Iterator[tuple[Path, str, ServiceAccount, Mapping[str, Bucket | Secret]]]:
    """Yield path, key, account and section of each bucket and secret that an account names."""
    for key, account in settings.service_accounts.items():
        for field, names, section in (
            ("reads", account.reads, settings.buckets),
            ("writes", account.writes, settings.buckets),
            ("secrets", account.secrets, settings.secrets),
        ):
            for index, name in enumerate(names):
                yield ("serviceAccounts", key, field, index), name, account, section


@rule()
def former_names(settings: Settings) -> Iterator[Problem]:
    """Check that no two entries have the same former name in ``formerly``."""
    for section in SECTIONS:
        keys = reader.first_keys(settings, section)
        counted = Counter(keys.values())
        for key, entry in settings.entries(section).items():
            former, path = entry.formerly, (*section, key, "formerly")
            if former is None:
                continue
            what = ""
            if former in OWN.get(section, ()):
                what = "formerly names a resource of the stack itself"
            elif former == key:
                what = "formerly repeats the current name"
            elif getattr(entry, "existing", None):
                what = "formerly has no effect on existing resources"
            if what:
                yield Problem(what, former, "remove formerly", path)
            elif counted[former] > 1:
                other = next(k for k, first in keys.items() if first == former and k != key)
                what = f"{other} has this name in the cloud"
                hint = f"rename {other}. If {other} was renamed too, set `formerly` of {other}"
                yield Problem(what, former, hint, path)


#: Project numbers that stand for a missing or encrypted number.
NOT_GIVEN: Final = ("", STAND_INS["projectNumber"])


@file_rule()
def project_numbers(file: StackFile) -> Iterator[Problem]:
    """Check that project numbers are the same as in other stack files."""
    settings, root = file.settings, file.root
    numbers: list[tuple[Path, str, str]] = []
    numbers.append((("projectNumber",), settings.project, settings.project_number))
    if host := settings.shared_vpc:
        path = ("sharedVpc", "hostProjectNumber")
        numbers.append((path, host.host_project, host.host_project_number))
    others = list(_numbers(settings, root))
    for path, project, number in numbers:
        if number in NOT_GIVEN:
            continue  # the number is optional for components
        if naming.is_local(project):
            right = naming.local_project_number(project)
            if number != right:
                what = f"project {project} has another number in the local cloud"
                yield Problem(what, number, f'write "{right}"', path)
            continue
        for name, other, its_number in others:
            if other == project and its_number not in (number, *NOT_GIVEN):
                what = f"{name} has number {its_number} for project {project}: correct one"
                hint = f"gcloud projects describe {project} --format='value(projectNumber)'"
                yield Problem(what, number, hint, path)
                break


def _numbers(settings: Settings, root: pathlib.Path) -> Iterator[tuple[str, str, str]]:
    """Yield file, project and number from each other readable stack file below ``root``."""
    for file, project, config in other_stack_files(settings, root):
        yield file, project, _number(config.get("projectNumber"))
        host = config.get("sharedVpc")
        if isinstance(host, dict):
            yield file, str(host.get("hostProject")), _number(host.get("hostProjectNumber"))


def other_stack_files(
    settings: Settings, root: pathlib.Path
) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield path, project and config of other stack files, also of ``bootstrap/``.

    The keys of the config are without namespace.
    """
    own = root / project_files.file_name(settings.stack)
    for file in sorted([*root.glob("Pulumi.*.yaml"), *root.glob("bootstrap/Pulumi.*.yaml")]):
        if file != own:
            config = readable_config(file)
            by_key = {key.rpartition(":")[2]: value for key, value in config.items()}
            yield file.relative_to(root).as_posix(), str(config.get("gcp:project")), by_key


def _number(value: Any) -> str:
    return str(value) if isinstance(value, str | int) else ""


Entries = Mapping[str, Bucket | ServiceAccount | Secret]
#: Keys that an entry may have beside ``existing``: keys about grants.
BESIDE: Final = {
    "buckets": {"existing", "project", "team"},
    "serviceAccounts": {
        *("existing", "team", "reads", "writes", "secrets", "calls_vertex", "submitters"),
        "datasets",
    },
    "secrets": {"existing", "team"},
}


#: Error text for keys that only the owner of an existing resource can set.
OF_OWNER: Final = "this key has no effect on existing resources, which their owner configures"


@rule()
def existing_entries(settings: Settings) -> Iterator[Problem]:
    """Check that existing entries set only grants, and that cloud names are distinct."""
    names = settings.names
    builder = [naming.IMAGE_BUILD] if settings.builds_images else []
    sections: list[tuple[str, Entries, Callable[[str], str], list[str]]] = [
        ("buckets", settings.buckets, names.bucket, [naming.STAGING, naming.CONTROL]),
        ("serviceAccounts", settings.service_accounts, names.account_email, builder),
        ("secrets", settings.secrets, names.secret, []),
    ]
    for section, entries, name_of, owned in sections:
        for key, entry in entries.items():
            # Rule `former_names` checks `formerly`.
            beside = entry.model_fields_set - BESIDE[section] - {"formerly"}
            for field in sorted(beside) if entry.existing else ():
                yield Problem(OF_OWNER, "", "remove this key", (section, key, to_camel(field)))
        yield from _twice(section, entries, name_of, {name_of(key) for key in owned})


@rule()
def existing_buckets(settings: Settings) -> Iterator[Problem]:
    """Check that only existing buckets set a project, and that none is a control bucket."""
    for key, bucket in settings.buckets.items():
        if bucket.project and not bucket.existing:
            what = "project requires existing: the stack creates buckets in its own project"
            yield Problem(what, bucket.project, "remove project", ("buckets", key, "project"))
        field, name = ("existing", bucket.existing) if bucket.existing else ("name", bucket.name)
        if name and name.startswith(f"{settings.project}-{naming.CONTROL}-"):
            what = "jobs must not access a control bucket, which has the records of submissions"
            yield Problem(what, name, "name another bucket", ("buckets", key, field))


@rule()
def existing_registry(settings: Settings) -> Iterator[Problem]:
    """Check that an existing registry sets no other keys."""
    registry = settings.registry
    if registry.existing:
        for field in sorted(registry.model_fields_set - {"existing"}):
            yield Problem(OF_OWNER, "", "remove this key", ("registry", to_camel(field)))


@rule()
def names_of_ranges(settings: Settings) -> Iterator[Problem]:
    """Check that address ranges, and reservations in the same zone, have distinct names."""
    names = settings.names
    places: list[tuple[Path, IpRange | Reservation, str, str]] = [
        (("network", "ranges", key), range_, "", names.ip_range(key))
        for key, range_ in settings.network.ranges.items()
    ]
    places += [
        (
            ("reservations", key),
            r,
            f"{r.project or settings.project} {r.zone}",
            names.reservation(key),
        )
        for key, r in settings.reservations.items()
    ]
    seen: dict[tuple[str, str], Path] = {}
    for path, entry, place, default in places:
        if entry.existing and entry.name:
            yield Problem(OF_OWNER, entry.name, "remove this key", (*path, "name"))
        if entry.existing:
            continue
        name = entry.name or default
        if other := seen.get((place, name)):
            named, shown = (path, other) if entry.name else (other, path)
            what = f"{shown[-1]} has the same name"
            yield Problem(what, name, "choose another name", (*named, "name"))
        seen[place, name] = path


def _twice(
    section: str, entries: Entries, name_of: Callable[[str], str], owned: Iterable[str]
) -> Iterator[Problem]:
    """Yield entries with the same cloud name, if the stack file sets any of these names."""
    seen = dict.fromkeys(owned, "the stack itself")
    first = {key: reader.first_key(key, entry) for key, entry in entries.items()}
    explicit = {first[key] for key, entry in entries.items() if entry.existing or entry.name}
    # Rule ``former_names`` reports two entries with one first key.
    by_default = {name_of(key): key for key in entries if first[key] not in explicit}
    for key, entry in entries.items():
        if not (entry.existing or entry.name):
            continue
        name = name_of(key)
        path: Path = (section, key, "existing" if entry.existing else "name")
        if other := seen.get(name) or by_default.get(name):
            what = f"{other} has the same name in the cloud"
            yield Problem(what, name, "choose another name", path)
        seen[name] = key


@file_rule("warning")
def labels_of_jobs(file: StackFile) -> Iterator[Problem]:
    """Warn about jobs with too many labels from file, stack, team and program together."""
    settings = file.settings
    most = max(len(settings.labels_of(team)) for team in (None, *settings.teams))
    for key, request in file.requests.items():
        own = request.message.get("labels", {})
        if len(own) + most <= MOST_OWN_LABELS:
            continue  # this is few enough for any team
        count = len({*own, *settings.labels_of(settings.team_at(request.account))})
        if len(own) <= MOST_OWN_LABELS < count:
            what = "this job has too many labels, including those of the stack and its team"
            most_of_all = f"a job can have {naming.MOST_LABELS}, some set by the program"
            hint = f"keep at most {MOST_OWN_LABELS}: {most_of_all}"
            yield Problem(what, str(count), hint, (request.kind.section, key))


@rule("warning")
def region_of_jobs(settings: Settings) -> Iterator[Problem]:
    """Warn about stacks in regions without training jobs."""
    if settings.region not in machines.regions():
        what = "this release lists no training jobs in this region"
        yield Problem(what, settings.region, "`vt catalogue` lists regions", ("region",))
