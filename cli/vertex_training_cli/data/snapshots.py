"""Command lines of ``vt data snapshots``: list, compare and delete snapshots."""

from __future__ import annotations

import operator
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from typing import Annotated, Any, Final

import typer
from google.cloud import storage

from vertex_training import stack as stacks_of_files
from vertex_training.errors import CommandError, counted
from vertex_training.naming import SNAPSHOTS
from vertex_training.snapshots import manifest as manifests
from vertex_training.snapshots.request import MANIFEST
from vertex_training.stack import Stack
from vertex_training_cli.console import console, json_document, plain, print_status, table
from vertex_training_cli.data import cloud
from vertex_training_cli.data.cloud import Place, RemoteObject, in_units
from vertex_training_cli.engine import stacks
from vertex_training_cli.options import Format, FormatOption, SelectedStack

#: Exit code without a terminal for a confirmation.
REFUSED: Final = 2
COLUMNS: Final = ("SNAPSHOT", "RUN", "ROWS", "BYTES", "QUERIED", "STACK FILE", "READ BY", "ID")
NONE: Final = "no manifest, not usable by jobs"
#: Minimum length of an id. Shorter arguments are runs.
SHORTEST_ID: Final = 6
Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="The snapshot's key in the stack file (its first key, if it was renamed).",
    ),
]
Which = Annotated[
    str,
    typer.Argument(
        metavar="RUN|ID", help="Run number, or the first 6 characters of the snapshot's id."
    ),
]
Force = Annotated[
    bool,
    typer.Option("--force", help="Delete the snapshot even if the stack file or a job uses it."),
]


@dataclass(frozen=True, slots=True)
class KeptSnapshot:
    """A snapshot's folder in a bucket."""

    name: str
    id: str
    folder: str
    declared: bool
    """True if the stack file declares the snapshot."""
    jobs: tuple[str, ...]
    """Jobs in the stack file that read the snapshot."""
    manifest: Mapping[str, Any] | None
    """Content of the manifest; None if the manifest is missing or invalid."""
    size: int
    objects: tuple[RemoteObject, ...] = field(repr=False)

    @property
    def run(self) -> str:
        """Return the snapshot's run; empty without a manifest."""
        return str(self.manifest["snapshot"].get("run", "")) if self.manifest else ""

    @property
    def queried_at(self) -> str:
        """Return the time of the query; empty without a manifest."""
        return str(self.manifest["query"].get("queriedAt", "")) if self.manifest else ""

    @property
    def facts(self) -> dict[str, Any]:
        """Return the values that ``diff`` compares, by their names in the manifest."""
        if self.manifest is None:
            return {}
        query = self.manifest["query"]
        keys = ("sqlSha256", "parameters", "asOf", "location", "queriedAt", "bytesBilled")
        return {
            "run": self.run,
            **{key: self.manifest.get(key) for key in ("rows", "bytes", "schema", "sources")},
            **{key: query.get(key) for key in keys},
        }


def list_(stack: SelectedStack = None, format_: FormatOption = Format.TEXT) -> None:
    """List snapshots in the stack's buckets, including those of earlier runs and names."""
    _, kept = _kept(stack)
    if format_ is Format.JSON:
        rows = [{**asdict(snapshot), "run": snapshot.run} for snapshot in kept]
        print(json_document([{k: v for k, v in row.items() if k != "objects"} for row in rows]))
    elif not kept:
        print_status("no snapshots")
    else:
        cells = [
            (
                snapshot.name,
                snapshot.run,
                str(snapshot.facts.get("rows", NONE)),
                in_units(snapshot.size),
                snapshot.queried_at,
                "declared" if snapshot.declared else "not declared",
                ", ".join(snapshot.jobs),
                snapshot.id,
            )
            for snapshot in kept
        ]
        console().print(table(*COLUMNS, rows=cells))


def diff(
    name: Name,
    old: Annotated[
        str,
        typer.Argument(
            metavar="[RUN|ID]", help="Older snapshot. Default: the second newest snapshot."
        ),
    ] = "",
    new: Annotated[
        str,
        typer.Argument(metavar="[RUN|ID]", help="Newer snapshot. Default: the newest snapshot."),
    ] = "",
    stack: SelectedStack = None,
    format_: FormatOption = Format.TEXT,
) -> None:
    """Compare rows, bytes, schema, sources and query of two snapshots with the same name.

    Exit code, as for diff(1): 0 equal, 1 different, 2 an error.

    Example: `vt data snapshots diff clicks 1 2 --stack dev`.
    """
    _, snapshots = _kept(stack)
    versions = [snapshot for snapshot in snapshots if snapshot.name == name and snapshot.manifest]
    if bool(old) != bool(new):
        raise CommandError(
            "a comparison requires two runs, but the command has only one.",
            "pass two runs, or no run to compare the newest two.",
        )
    if old:
        pair = [_one(versions, name, version) for version in (old, new)]
    elif len(versions) > 1:
        pair = versions[-2:]
    else:
        what = f"a comparison requires two snapshots of {name!r}, but {len(versions)} exist."
        raise CommandError(what, _list_hint(snapshots))
    before, after = (snapshot.facts for snapshot in pair)
    rows = {key: (before[key], after[key]) for key in before if before[key] != after[key]}
    if format_ is Format.JSON:
        print(json_document({key: {"old": old, "new": new} for key, (old, new) in rows.items()}))
    elif rows:
        cells = [row for key, both in rows.items() for row in _differences(key, *both)]
        console().print(table("", pair[0].id, pair[1].id, rows=cells))
    else:
        print_status(f"snapshots {pair[0].id} and {pair[1].id} are equal")
    raise typer.Exit(1 if rows else 0)


def delete(
    name: Name,
    which: Which,
    stack: SelectedStack = None,
    force: Force = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Skip the confirmation.")] = False,
) -> None:
    """Delete the files of a snapshot. No other command deletes these files.

    Without --force, the command refuses to delete a snapshot that the stack file names or that a
    job reads. The record of the snapshot stays, so that `pulumi up` does not create the snapshot
    again from changed tables.

    Exit code: 0 deleted, 1 refused, 2 not confirmed (no terminal and no --yes).
    """
    client, snapshots = _kept(stack)
    kept = _one([snapshot for snapshot in snapshots if snapshot.name == name], name, which)
    reasons = ["the stack file declares the snapshot"] if kept.declared else []
    reasons += [f"jobs read the snapshot: {', '.join(kept.jobs)}"] if kept.jobs else []
    what = f"{kept.folder}, {counted(len(kept.objects), 'object')}, {in_units(kept.size)}"
    if reasons and not force:
        hint = "raise the snapshot's `run` in the stack file first, or pass --force."
        raise CommandError(f"{what}: {'; '.join(reasons)}.", hint)
    for reason in reasons:
        print_status(reason)
    if not yes and not sys.stdin.isatty():
        print_status(f"without a terminal, a deletion requires --yes. Not deleted: {plain(what)}")
        raise typer.Exit(REFUSED)
    if not yes and not typer.confirm(f"Delete {plain(what)}?"):
        raise typer.Exit(1)
    manifest_first = sorted(kept.objects, key=lambda item: item.name != MANIFEST)
    bucket, _, prefix = kept.folder.removeprefix("gs://").partition("/")
    cloud.delete(client, Place(bucket, f"{prefix}/"), manifest_first)
    print(f"deleted {plain(what)}")


def _kept(name: str | None) -> tuple[storage.Client, list[KeptSnapshot]]:
    ref = stacks.find(name)
    stack = stacks_of_files.load(ref.root, ref.stack)
    client = cloud.connect(ref, print_status)
    requests = {
        key: result.request.body for key, result in stack.check_jobs().items() if result.request
    }
    snapshots = [
        snapshot
        for key in stack.declared.buckets
        for snapshot in _in_bucket(client, stack.declared.names.bucket(key), stack, requests)
    ]
    return client, sorted(snapshots, key=operator.attrgetter("name", "queried_at", "id"))


def _in_bucket(
    client: storage.Client, bucket: str, stack: Stack, requests: Mapping[str, str]
) -> Iterator[KeptSnapshot]:
    top = Place(bucket, f"{SNAPSHOTS}/{stack.settings.stack}/")
    folders: dict[tuple[str, str], list[RemoteObject]] = {}
    for item in cloud.objects(client, top):
        name, _, rest = item.name.partition("/")
        id_, _, inner = rest.partition("/")
        if inner:
            folders.setdefault((name, id_), []).append(replace(item, name=inner))
    declared = {request.prefix for request in stack.snapshots.values() if request.bucket == bucket}
    for (name, id_), objects in folders.items():
        place = Place(bucket, f"{top.prefix}{name}/{id_}")
        text = b""
        if any(item.name == MANIFEST and item.size <= manifests.MAX_BYTES for item in objects):
            with cloud.plain_errors(place, "read"):
                blob = client.bucket(bucket).blob(f"{place.prefix}/{MANIFEST}")
                text = blob.download_as_bytes(timeout=cloud.TIMEOUT)
        manifest: Mapping[str, Any] | None = None
        with suppress(ValueError):
            manifest = manifests.parse(text)
        yield KeptSnapshot(
            name=name,
            id=id_,
            folder=str(place),
            declared=place.prefix in declared,
            jobs=tuple(k for k, body in requests.items() if f"{bucket}/{place.prefix}" in body),
            manifest=manifest,
            size=sum(item.size for item in objects),
            objects=tuple(objects),
        )


def _one(kept: list[KeptSnapshot], name: str, which: str) -> KeptSnapshot:
    by_run = [snapshot for snapshot in kept if snapshot.run == which]
    is_id = len(which) >= SHORTEST_ID
    hits = by_run or [snapshot for snapshot in kept if snapshot.id.startswith(which) and is_id]
    if len(hits) != 1:
        raise CommandError(
            f"{len(hits) or 'no'} snapshots match {name!r} {which!r}.", _list_hint(kept)
        )
    return hits[0]


def _list_hint(kept: list[KeptSnapshot]) -> str:
    if not kept:
        return "the stack's buckets have no snapshots."
    known = dict.fromkeys(f"{snapshot.name} {snapshot.run} {snapshot.id}" for snapshot in kept[:9])
    return f"existing snapshots: {plain(', '.join(known))}."


def _differences(key: str, old: Any, new: Any) -> Iterator[tuple[str, str, str]]:
    if not (isinstance(old, list) and isinstance(new, list)):
        yield key, str(old), str(new)
        return
    before, after = ({json_document(row): row for row in side} for side in (old, new))
    for text in dict.fromkeys((*before, *after)):
        if (text in before) != (text in after):
            line = " ".join(text.split())
            yield key, line if text in before else "", line if text in after else ""
