"""Names, numbers and labels that Google Cloud would refuse, given twice, or of missing entries."""

from __future__ import annotations

import pathlib
from collections import Counter
from collections.abc import Container, Iterator, Mapping
from typing import Any, Final

import yaml
from pydantic.alias_generators import to_camel

from vertex_training import naming
from vertex_training.catalog import machines
from vertex_training.customjob.protocol.ports import JOB_LABELS
from vertex_training.errors import Path, Problem, did_you_mean
from vertex_training.located_yaml.values import Loader
from vertex_training.plan import stack_grants
from vertex_training.settings import project_files, renames
from vertex_training.settings.model import (
    SECTIONS,
    Bucket,
    Secret,
    ServiceAccount,
    Settings,
)
from vertex_training.settings.reader import STAND_INS
from vertex_training.stack_rules.registry import StackFile, file_rule, rule

#: Labels that a stack file and a job file may give; the program's own come to them.
MOST_OWN_LABELS: Final = naming.MOST_LABELS - len(JOB_LABELS)
#: Section -> keys of what the stack makes there by itself.
OWN: Final = {
    ("buckets",): (naming.STAGING, naming.CONTROL),
    ("serviceAccounts",): (naming.IMAGE_BUILD,),
    ("network", "allow"): ("workers",),
}


@rule()
def bucket_names(settings: Settings) -> Iterator[Problem]:
    """Buckets have names that Cloud Storage takes, and not those of the stack's own."""
    names = settings.names
    for key in settings.buckets:
        path = ("buckets", key)
        if key in (naming.STAGING, naming.CONTROL):
            yield Problem("the stack makes this bucket itself", key, "rename it", path)
        name = names.bucket(key)
        if settings.buckets[key].existing:
            continue
        if not naming.BUCKET.match(name):
            yield Problem("makes a bucket name longer than 63", name, "shorten it", path)
        elif naming.BUCKET_GOOGLE.match(name):
            what = "makes a bucket name that begins with goog or contains google: it is refused"
            yield Problem(what, name, "choose another name", path)


@rule()
def account_names(settings: Settings) -> Iterator[Problem]:
    """Accounts have ids that IAM takes."""
    names = settings.names
    for key in settings.service_accounts:
        name = names.account_id(key)
        if not naming.ACCOUNT_ID.match(name):
            what = "makes an account id that is not 6 to 30 characters long"
            yield Problem(what, name, "choose another name", ("serviceAccounts", key))


@rule()
def stack_labels(settings: Settings) -> Iterator[Problem]:
    """Labels of the stack are legal, and few enough with those of any team."""
    yield from label_problems(settings.labels, ("labels",))
    hint = f"at most {MOST_OWN_LABELS}: a resource has {naming.MOST_LABELS}, some are the stack's"
    if (count := len(settings.labels)) > MOST_OWN_LABELS:
        yield Problem("too many labels", str(count), hint, ("labels",))
        return
    for team in settings.teams:
        if (count := len(settings.labels_of(team))) > MOST_OWN_LABELS:
            what = "too many labels, with those of the stack"
            yield Problem(what, str(count), hint, ("teams", team, "labels"))


def label_problems(
    labels: Mapping[str, str], path: Path, others: Container[str] = ()
) -> Iterator[Problem]:
    """Yield labels that no resource can have, and those that the stack sets, ``others`` too."""
    for key, value in labels.items():
        if naming.is_own_label(key) or key in others:
            yield Problem("the stack sets this label itself", value, "remove it", (*path, key))
        elif problem := naming.label_problem(key, value):
            yield Problem(problem, value, path=(*path, key))


@rule()
def member_forms(settings: Settings) -> Iterator[Problem]:
    """Members are written as IAM takes them."""
    for path, members in stack_grants.member_lists(settings):
        for index, member in enumerate(members):
            if not naming.is_member(member):
                kinds = ", ".join(naming.MEMBER_KINDS[:3])
                hint = f"write {kinds} or a principal of workload identity"
                yield Problem("not an IAM member", member, hint, (*path, index))


@rule("warning")
def members_in_other_case(settings: Settings) -> Iterator[Problem]:
    """Google Cloud compares addresses without their case: two spellings are one member."""
    for path, members in stack_grants.member_lists(settings):
        seen = set[str]()
        for index, member in enumerate(members):
            same = member.lower() if "://" not in member else member
            if same in seen and member not in members[:index]:
                what = (
                    "repeats a member in another case: "
                    "removing either entry revokes the grant of both"
                )
                yield Problem(what, member, f"keep one entry: {same}", (*path, index))
            seen.add(same)


#: Settings of the provider that do not apply to jobs -> what does the same for jobs.
_OF_PROVIDER: Final = {
    "defaultLabels": "vertex-training:labels, which jobs get as well",
    "billingProject": "jobs are paid by gcp:project",
    "deletionPolicy": "onDelete of a job",
    "requestReason": "labels of the job, if the audit log is to name a reason",
    "vertexAiCustomEndpoint": "jobs are sent to the endpoint of gcp:region",
}


@file_rule("warning")
def provider_settings(file: StackFile) -> Iterator[Problem]:
    """Settings of the provider apply to its resources, and not to jobs."""
    own = config_of(file.root / project_files.file_name(file.settings.stack))
    defaults = config_of(file.root / "Pulumi.yaml")
    for key, hint in _OF_PROVIDER.items():
        name = f"gcp:{key}"
        if name in own or name in defaults:
            where = "" if name in own else "Pulumi.yaml sets it: "
            what = f"{where}applies to resources of the provider, and not to jobs"
            yield Problem(what, hint=hint, path=(name,))


@rule()
def entry_labels(settings: Settings) -> Iterator[Problem]:
    """Labels of buckets and secrets are legal."""
    sections = {"buckets": settings.buckets, "secrets": settings.secrets}
    for section, entries in sections.items():
        for key, entry in entries.items():
            yield from label_problems(entry.labels, (section, key, "labels"))


@rule()
def jobs_of_one_name(settings: Settings) -> Iterator[Problem]:
    """A job and a tuning job of one name would be one to every command and report."""
    taken: dict[str, str] = {}
    for key, job in settings.jobs.items():
        taken |= dict.fromkeys((key, renames.first_key(key, job)), key)
    for key, tuning in settings.tuning.items():
        names = (key, renames.first_key(key, tuning))
        if job := next((taken[name] for name in names if name in taken), ""):
            what, hint = f"job '{job}' has this name", "names of jobs and tuning jobs differ"
            yield Problem(what, key, hint, ("tuning", key))


@rule()
def image_builds(settings: Settings) -> Iterator[Problem]:
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


@rule()
def unknown_keys(settings: Settings) -> Iterator[Problem]:
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


@rule()
def former_names(settings: Settings) -> Iterator[Problem]:
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


@file_rule()
def project_numbers(file: StackFile) -> Iterator[Problem]:
    """Numbers are those of their projects, as other stack files have them."""
    settings, root = file.settings, file.root
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
        for name, other, its_number in others:
            if other == project and its_number not in (number, *NOT_GIVEN):
                what = f"{name} gives {project} the number {its_number}: one of them is wrong"
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


#: What an entry may say beside ``existing``: what the stack grants there, and to whom.
BESIDE: Final = {
    "buckets": {"existing", "project", "team"},
    "serviceAccounts": {
        *("existing", "team", "reads", "writes", "secrets", "calls_vertex", "submitters"),
        "datasets",
    },
    "secrets": {"existing", "team"},
}


@rule()
def existing_entries(settings: Settings) -> Iterator[Problem]:
    """Of what exists only grants are said, and no two entries have one name."""
    sections: dict[str, Mapping[str, Bucket | ServiceAccount | Secret]] = {
        "buckets": settings.buckets,
        "serviceAccounts": settings.service_accounts,
        "secrets": settings.secrets,
    }
    for section, entries in sections.items():
        for key, entry in entries.items():
            if entry.existing:
                yield from _of_the_owner(section, key, entry)
        yield from _twice(settings, section, entries)


def _of_the_owner(
    section: str, key: str, entry: Bucket | ServiceAccount | Secret
) -> Iterator[Problem]:
    """Keys about what the stack does not make; ``formerly`` has a rule of its own."""
    for field in sorted(entry.model_fields_set - BESIDE[section] - {"formerly"}):
        what = "is its owner's to say: this exists"
        yield Problem(what, "", "remove it", (section, key, to_camel(field)))


@rule()
def existing_buckets(settings: Settings) -> Iterator[Problem]:
    """Only buckets that exist have a project, and none of them has records of submissions."""
    for key, bucket in settings.buckets.items():
        if bucket.project and not bucket.existing:
            what = "says nothing without existing: the stack makes its buckets in its own project"
            yield Problem(what, bucket.project, "remove it", ("buckets", key, "project"))
        field, name = ("existing", bucket.existing) if bucket.existing else ("name", bucket.name)
        if name and name.startswith(f"{settings.project}-{naming.CONTROL}-"):
            what = "has the records that make a submission happen once: jobs never reach them"
            yield Problem(what, name, "another bucket", ("buckets", key, field))


@rule()
def existing_registry(settings: Settings) -> Iterator[Problem]:
    """A registry that exists is named, and nothing else is said of it."""
    registry = settings.registry
    if registry.existing:
        for field in sorted(registry.model_fields_set - {"existing"}):
            what = "is its owner's to say: this exists"
            yield Problem(what, "", "remove it", ("registry", to_camel(field)))


@rule()
def names_of_ranges(settings: Settings) -> Iterator[Problem]:
    """Names of ranges of addresses, and of reservations of one zone."""
    for section, entries, place in (
        (("network", "ranges"), settings.network.ranges, lambda _: ""),
        (
            ("reservations",),
            settings.reservations,
            lambda each: f"{each.project or settings.project} {each.zone}",
        ),
    ):
        seen: dict[tuple[str, str], str] = {}
        for key, entry in entries.items():
            if entry.existing and entry.name:
                what = "is its owner's to say: this exists"
                yield Problem(what, entry.name, "remove it", (*section, key, "name"))
            if entry.existing:
                continue
            made = settings.names.reservation(key)
            if section != ("reservations",):
                made = settings.names.ip_range(key)
            name = entry.name or made
            if other := seen.get((place(entry), name)):
                named, shown = (key, other) if entry.name else (other, key)
                path = (*section, named, "name")
                yield Problem(f"is the name of {shown}, too", name, "one of them", path)
            seen[place(entry), name] = key


def _twice(
    settings: Settings,
    section: str,
    entries: Mapping[str, Bucket | ServiceAccount | Secret],
) -> Iterator[Problem]:
    """Two entries with one name in the cloud, of which at least one was given."""
    names = settings.names
    name_of = {
        "buckets": names.bucket,
        "serviceAccounts": names.account_email,
        "secrets": names.secret,
    }[section]
    owned = {
        "buckets": (naming.STAGING, naming.CONTROL),
        "serviceAccounts": (naming.IMAGE_BUILD,) if settings.builds_images else (),
        "secrets": (),
    }[section]
    seen = {name_of(key): "the stack itself" for key in owned}
    first = {key: renames.first_key(key, entry) for key, entry in entries.items()}
    given = {first[key] for key, entry in entries.items() if entry.existing or entry.name}
    # Two with one first key are a mistake of their own: vertex_training.stack_rules.names.
    by_default = {name_of(key): key for key in entries if first[key] not in given}
    for key, entry in entries.items():
        if not (entry.existing or entry.name):
            continue
        name = name_of(key)
        path: Path = (section, key, "existing" if entry.existing else "name")
        if other := seen.get(name) or by_default.get(name):
            yield Problem(f"is the name of {other}, too", name, "one of them", path)
        seen[name] = key


@file_rule("warning")
def labels_of_jobs(file: StackFile) -> Iterator[Problem]:
    """A job has the labels of its file, of the stack and of its team, and those of the program.

    Each alone is judged by a rule of its own.
    """
    settings = file.settings
    given = max(map(len, settings.labels_by_team.values()))
    for key, request in file.requests.items():
        own = request.message.get("labels", {})
        if len(own) + given <= MOST_OWN_LABELS:
            continue  # whoever it belongs to
        count = len({*own, *settings.labels_of(settings.team_at(request.account))})
        if len(own) <= MOST_OWN_LABELS < count:
            what = "its labels with those of the stack and of its team are too many"
            hint = (
                f"at most {MOST_OWN_LABELS}: a job has {naming.MOST_LABELS}, some are the program's"
            )
            yield Problem(what, str(count), hint, (request.kind.section, key))


@rule("warning")
def region_of_jobs(settings: Settings) -> Iterator[Problem]:
    """The region runs training jobs."""
    if settings.region not in machines.regions():
        what = "runs no training jobs, as far as this release knows"
        yield Problem(what, settings.region, "`vt catalogue` lists regions", ("region",))
