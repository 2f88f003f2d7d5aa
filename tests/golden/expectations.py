"""What a review must answer, from the script of a change: its files before and after.

Nothing here imports the code that makes reports. ``True`` stands for an answer, whatever it says,
``False`` for "nothing", and words for what the answer must name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from tests.golden.changes import Change, edited

#: USD an hour in us-central1 by machine type and strategy, with the fee, which is 15 % of the
#: price on demand also where the machine is SPOT; another one has no price:
#: cloud.google.com/vertex-ai/pricing.
PRICES: Final = {
    ("n1-standard-4", "STANDARD"): 0.2185,
    ("n1-standard-4", "SPOT"): 0.0955,
    ("n1-highmem-32", "STANDARD"): 2.1768,
}
GROUP: Final = "group:ml-engineers@example.com"

Answer = bool | frozenset[str]


@dataclass(frozen=True)
class Files:
    """A stack file and its job files, read."""

    stack: Mapping[str, Any]
    jobs: Mapping[str, str]
    """Text of each job file, by its name without ``.yaml``."""
    program: str

    def job(self, name: str) -> str | None:
        """The text of a job's file; None where the stack has no such job."""
        entry = self.section("jobs").get(name)
        return None if entry is None else self.jobs[Path(entry["file"]).stem]

    def section(self, name: str) -> Any:
        return self.stack.get(f"vertex-training:{name}") or {}

    @property
    def region(self) -> str:
        return self.stack["gcp:region"]


def before_and_after(stack: str, job: str, change: Change) -> tuple[Files, Files]:
    """The files before a change and after it."""
    others = change.job if change.all_jobs else ()
    return (
        Files(yaml.safe_load(stack)["config"], {"train": job, "check": job}, ""),
        Files(
            yaml.safe_load(edited(stack, change.stack))["config"],
            {"train": edited(job, change.job), "check": edited(job, others)},
            "".join(new for _, new in change.program),
        ),
    )


def expected(stack: str, job: str, change: Change) -> dict[str, Answer]:
    """Question -> what its answer must name."""
    old, new = before_and_after(stack, job, change)
    again, gone = _jobs(old, new)
    replaced = again & set(old.section("jobs"))
    return {
        "what runs": frozenset(again),
        "what it can cost": _costs(old, new, again),
        "who gains a right": _gains(old, new) | ({"shell"} if _shells(new) else set()),
        "what is lost": _lost(old, new),
        "what becomes public": _public(new),
        "what stops": frozenset(replaced | gone),
        "what is replaced": frozenset(replaced)
        | (_stores(new) if old.region != new.region else set()),
        "which limits are raised": _limits(old, new) | _guards(old, new),
        "what policies say": _policies(new, change),
        "whose data becomes readable": _readable(old, new),
        "what was not looked at": change.exit_code in (1, 4),
        "what the digest binds": frozenset({"limits", "policies", "protection", "outcome"}),
    }


def _first(name: str, entry: Mapping[str, Any] | None) -> str:
    """The name that an entry was deployed with."""
    return (entry or {}).get("formerly", name)


def _jobs(old: Files, new: Files) -> tuple[set[str], set[str]]:
    """Jobs that are submitted again, or for the first time, and those that leave the stack."""
    before, after = old.section("jobs"), new.section("jobs")
    everything = old.region != new.region or old.section("encryption") != new.section("encryption")
    again = set[str]()
    for name, entry in after.items():
        first = _first(name, entry)
        same = {key: value for key, value in entry.items() if key != "formerly"}
        if everything or old.job(first) != new.job(name) or before.get(first) != same:
            again.add(name)
    return again, set(before) - {_first(name, entry) for name, entry in after.items()}


def _price(text: str, region: str) -> float | None:
    """USD until the timeout; None without a price."""
    job = yaml.safe_load(re.sub(r"\$\{[^}]*\}", "x", text))
    [pool], scheduling = job["workerPoolSpecs"], job["scheduling"]
    key = (pool["machineSpec"]["machineType"], scheduling.get("strategy", "STANDARD"))
    hours = int(scheduling["timeout"].removesuffix("s")) / 3600
    rate = PRICES.get(key) if region == "us-central1" else None
    return None if rate is None else rate * pool["replicaCount"] * hours


def _costs(old: Files, new: Files, again: set[str]) -> frozenset[str]:
    words, sums = set[str](), [0.0, 0.0]
    for name in again:
        texts = [(files.job(name), files.region) for files in (old, new)]
        prices = [0.0 if text is None else _price(text, region) for text, region in texts]
        if None in prices:
            words.add("price" if new.region == "us-central1" else "$")
        else:
            sums = [total + (price or 0) for total, price in zip(sums, prices, strict=True)]
    words |= {f"${total:,.2f}" for total in sums if total}
    before, after = old.section("reservations"), new.section("reservations")
    for name in {*before, *after}:
        if before.get(name) != after.get(name):
            counts = [files.get(name, {"count": 0})["count"] for files in (before, after)]
            words |= {name, "a month", f"{counts[0]} ", f"{counts[1]} x"}
    cold = (
        f"storage-{name}"
        for name, entry in new.section("buckets").items()
        if entry.get("storageClass", "STANDARD") != "STANDARD"
    )
    return frozenset(words | set(cold))


def _accounts(files: Files) -> Iterator[tuple[str, str, str]]:
    """(account, verb, bucket or secret) of all accounts."""
    for name, account in files.section("serviceAccounts").items():
        for verb, key in (("reads", "reads"), ("writes", "writes"), ("reads", "secrets")):
            yield from ((name, verb, _bucket(files, target)) for target in account.get(key, ()))


def _bucket(files: Files, key: str) -> str:
    """What a bucket, or a secret, is called in the cloud, or the key that stands in its name."""
    entry = files.section("buckets").get(key, {})
    return entry.get("existing") or _first(key, entry)


def _given(files: Files) -> set[tuple[str, str, str]]:
    """(member, role, bucket) that the stack file grants by name."""
    return {
        (member, role, key)
        for key, bucket in files.section("buckets").items()
        for role, members in bucket.get("members", {}).items()
        for member in members
    }


def _members(files: Files) -> set[str]:
    return set(files.section("submitters") or ())


def _shells(files: Files) -> bool:
    return any("enableWebAccess: true" in text for text in files.jobs.values())


def _gains(old: Files, new: Files) -> frozenset[str]:
    words = {account for account, *_ in set(_accounts(new)) - set(_accounts(old))}
    words |= _members(new) - _members(old)
    words |= {word for given in _given(new) - _given(old) for word in given}
    words |= {"allUsers"} if "allUsers" in new.program else set()
    if new.section("network").get("mode") == "psc" != old.section("network").get("mode"):
        words |= {"gcp-sa-aiplatform"}
    if new.section("encryption") not in ({}, old.section("encryption")):
        words |= {"roles/cloudkms.cryptoKeyEncrypterDecrypter", "gs-project-accounts"}
    return frozenset(words)


def _stores(files: Files) -> set[str]:
    """Resources with data of a stack: its buckets, its secrets, its repository."""
    given = files.section("buckets").items()
    buckets = {f"storage-{name}" for name, entry in given if not entry.get("existing")}
    return buckets | {f"secrets-{name}" for name in files.section("secrets")} | {"registry"}


def _lost(old: Files, new: Files) -> Answer:
    if old.region != new.region:
        own = {"storage-control", "storage-staging"}
        return frozenset(_stores(old) | own | {"recreated without data"})
    words = _gone(old, new)
    after = {_first(name, entry): entry for name, entry in new.section("buckets").items()}
    for name, was in old.section("buckets").items():
        now = after.get(name)
        if now is None:
            words |= {f"storage-{name}"} | ({"refused"} if was.get("protect") else {"destroyed"})
            continue
        worse = (
            now.get("softDeleteDays", 7) < was.get("softDeleteDays", 7),
            now.get("keepNoncurrentDays", 30) < was.get("keepNoncurrentDays", 30),
            now.get("deleteAfterDays", 9999) < was.get("deleteAfterDays", 9999),
            now.get("versioning", True) < was.get("versioning", True),
            now.get("forceDestroy", False) > was.get("forceDestroy", False),
            now.get("protect", False) < was.get("protect", False),
            now.get("existing") != was.get("existing"),
            now.get("retention") is not None,
        )
        words |= {f"storage-{name}"} if any(worse) else set()
    was, now = old.section("registry"), new.section("registry")
    if now.get("existing") != was.get("existing"):
        words |= {"registry-docker", "replaced by" if was.get("existing") else "destroyed"}
    elif now.get("keepVersions", 10) < was.get("keepVersions", 10):
        words |= {"registry-docker", "versions", "days"}
    words |= {
        name
        for name in old.section("serviceAccounts")
        if name not in new.section("serviceAccounts")
    }
    if old.section("network").get("mode") not in (None, new.section("network").get("mode")):
        words |= {"network-"}
    return frozenset(words)


def _gone(old: Files, new: Files) -> set[str]:
    """What leaves a stack as a whole, and what has only another name."""
    words = {f"secrets-{n}" for n in set(old.section("secrets")) - set(new.section("secrets"))}
    words |= set(old.section("reservations")) - set(new.section("reservations"))
    words |= (
        {"your key", "first"}
        if old.section("encryption") and not new.section("encryption")
        else set()
    )
    for section in ("buckets", "jobs"):
        before, after = old.section(section), new.section(section)
        firsts = {_first(name, entry): entry for name, entry in after.items()}
        words |= {
            word
            for name in set(before) - set(firsts)
            for other in set(firsts) - set(before)
            if before[name] == firsts[other]
            for word in (f"formerly: {name}", f"{section}.{other}")
        }
    return words


def _guards(old: Files, new: Files) -> set[str]:
    """Guards that are lowered and are no limit: drift, rules, another key."""
    allowed = new.section("drift").get("allowed", {}).values()
    words = {each["member"] for each in allowed} | set(new.section("rules"))
    keys = [files.section("encryption").get("key") for files in (old, new)]
    if all(keys) and keys[0] != keys[1] and old.region == new.region:
        words |= {str(key).rpartition("/")[2] for key in keys}
    return words


def _public(new: Files) -> Answer:
    allowed = json.dumps(new.section("network"))
    words = {"raw"} if "allUsers" in new.program else set()
    return frozenset(words | ({"any address", "web"} if "0.0.0.0/0" in allowed else set()))


def _limits(old: Files, new: Files) -> frozenset[str]:
    words = set[str]()
    for key, was in old.section("limits").items():
        now = new.section("limits").get(key)
        if isinstance(was, int) and (now is None or now > was):
            words |= {key, f"${was:,.2f}", f"${now:,.2f}" if now else "no limit"}
        elif isinstance(was, list) and (now is None or set(now) - set(was)):
            words |= {key, *was, *(now or ["no limit"])}
    return frozenset(words)


def _policies(new: Files, change: Change) -> Answer:
    if "--policy-pack" not in change.flags:
        return frozenset({"no policy pack"})
    level = new.section("policyLevels").get("bucket-versioned", "mandatory")
    if level == "mandatory":
        return frozenset({"forbidden", "bucket-versioned", "storage-data"})
    return frozenset({"warning", "lowered", "bucket-versioned", f"mandatory` → `{level}"})


def _readable(old: Files, new: Files) -> Answer:
    """Data that accounts newly reach, submitters by acting as one, and everybody."""

    def reach(files: Files) -> set[tuple[str, str, str, str]]:
        own = {(member, "reads", "", key) for member, _, key in _given(files)}
        return own | {(member, *each) for member in _members(files) for each in _accounts(files)}

    gained = reach(new) - reach(old)
    words = {word for member, _, _, target in gained for word in (member, target)}
    words |= {account for account, *_ in set(_accounts(new)) - set(_accounts(old))}
    if new.section("encryption") not in ({}, old.section("encryption")):
        words |= {"cryptoKeyEncrypterDecrypter"}
    return frozenset(words | ({"`allUsers`: reads"} if "allUsers" in new.program else set()))
