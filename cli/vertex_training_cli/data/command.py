"""The command lines of ``vt data``."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from vertex_training import stack as stacks_of_files
from vertex_training.settings import stack_files
from vertex_training_cli.console import plain
from vertex_training_cli.data import cloud, comparison, download, files, places, upload
from vertex_training_cli.data.comparison import FolderComparison, Pair
from vertex_training_cli.data.files import LocalFile
from vertex_training_cli.data.places import Place
from vertex_training_cli.data.progress import in_units, progress
from vertex_training_cli.engine import stacks
from vertex_training_cli.options import Format, FormatOption, SelectedStack
from vertex_training_cli.status import print_line

if TYPE_CHECKING:
    from google.cloud import storage

    from vertex_training.settings.model import Settings

#: Exit code where a question cannot be asked.
REFUSED: Final = 2

BucketArgument = Annotated[
    str,
    typer.Argument(
        metavar="BUCKET[/PREFIX]", help="A bucket of the stack file, or gs://BUCKET/PREFIX."
    ),
]
Exclude = Annotated[
    list[str] | None,
    typer.Option(help="Pattern of names to leave out, such as '*.tmp'. Repeatable."),
]
FollowLinks = Annotated[
    bool, typer.Option("--follow-links", help="Take the files that links point to.")
]
Delete = Annotated[
    bool, typer.Option("--delete", help="Delete objects that the folder lacks; asks first.")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="With --delete: do not ask.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and stop.")]


def _say(text: str) -> None:
    """A line for people: names of objects and files in it direct no terminal."""
    print_line(text)


@contextmanager
def _place(text: str, stack: str | None) -> Iterator[tuple[storage.Client, Place]]:
    """The client and the place; see :func:`_stack_place`."""
    with _stack_place(text, stack) as (client, place, _, _):
        yield client, place


@contextmanager
def _stack_place(
    text: str, stack: str | None
) -> Iterator[tuple[storage.Client, Place, Settings, Path]]:
    """The client and the place, the settings of the stack, and its checkout."""
    ref, _ = stacks.find_with_scripts(stack)
    raw = stack_files.read_raw(stacks_of_files.SCHEMA, ref.root, ref.stack)
    settings = stacks_of_files.read_settings(raw, ref.root)
    place = places.find(text, settings, settings.names)
    try:
        client = cloud.connect(ref, lambda line: _say(f"vt: {line}"))
        yield client, place, settings, ref.root
    except KeyboardInterrupt:
        _say("vt: interrupted; what arrived stays. Run it again to go on.")
        raise


def push(
    bucket: BucketArgument,
    folder: Annotated[Path, typer.Argument(help="A folder, or one file.")],
    stack: SelectedStack = None,
    exclude: Exclude = None,
    follow_links: FollowLinks = False,
    delete: Delete = False,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Send the files of a folder that a bucket lacks or has otherwise.

    Files are compared by size and CRC32C. A large file that was interrupted goes on where it was.

    Files that look like secrets are refused before anything is sent.

    Exit code: 0 done, 1 something was not sent, 2 --delete cannot ask, 130 interrupted.
    """
    with _stack_place(bucket, stack) as (client, place, settings, root):
        places.refuse_records(place, settings.names)
        found = files.scan(folder, exclude or (), follow_links=follow_links)
        if found.links:
            _say(f"vt: {found.links} links are left out; --follow-links takes their files")
        remote = {item.name: item for item in cloud.objects(client, place)}
        compared = comparison.to_push(found.files, remote, _checksum)
        places.refuse_snapshots(place, (pair.name for pair in compared.of("new", "changed")))
        upload.refuse_secrets(compared.of("new", "changed"), settings, root, _say)
        gone = _deletable(compared.only_in_target, exclude, place) if delete else ()
        if dry_run:
            _show(compared, gone, "send")
            return
        if gone:
            _confirm(gone, place, yes=yes)
        sent = compared.of("new", "changed")
        with progress(f"to {place}", sum(pair.size for pair in sent)) as advance:
            upload.push(client, place, sent, advance)
        if gone:
            upload.delete(client, place, [remote[name] for name in gone])
        _report("sent", sent, compared, f", deleted {len(gone)}" if gone else "")


def pull(
    bucket: BucketArgument,
    folder: Annotated[Path, typer.Argument(help="A folder; it is made.")],
    stack: SelectedStack = None,
    exclude: Exclude = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace files that differ from the bucket's.")
    ] = False,
    dry_run: DryRun = False,
) -> None:
    """Fetch the objects of a bucket that a folder lacks.

    Files that differ are kept and named, unless --replace is given. Nothing is deleted.

    Exit code: 0 done, 1 something was not fetched or differs, 130 interrupted.
    """
    with _place(bucket, stack) as (client, place):
        remote = [item for item in cloud.objects(client, place)
                  if not files.is_excluded(item.name, exclude or ())]  # fmt: skip
        files.ensure_writable(folder, [item.name for item in remote])
        here = {item.name: item for item in files.at(folder, [item.name for item in remote])}
        compared = comparison.to_pull(here, remote, _checksum)
        if dry_run:
            _show(compared, (), "fetch")
            return
        fetched = compared.of("new", "changed") if replace else compared.of("new")
        with progress(f"from {place}", sum(pair.size for pair in fetched)) as advance:
            download.pull(client, place, folder, fetched, advance)
        _report("fetched", fetched, compared)
        if not replace:
            _tell_kept(compared.of("changed"))


def ls(
    bucket: BucketArgument,
    stack: SelectedStack = None,
    format_: FormatOption = Format.TEXT,
) -> None:
    """List the objects of a bucket below a prefix: size in bytes, time of change (UTC), name."""
    with _place(bucket, stack) as (client, place):
        count = total = 0
        for item in cloud.objects(client, place):
            count, total = count + 1, total + item.size
            name = place.prefix + item.name
            if format_ is Format.JSON:
                row = {"name": name, "size": item.size, "crc32c": item.crc32c}
                print(json.dumps({**row, "updated": item.updated, "generation": item.generation}))
            else:
                print(f"{item.size:>14}  {item.updated}  {plain(name)}")
        _say(f"vt: {count} objects, {in_units(total)}, in gs://{place.bucket}")


def _checksum(file: LocalFile) -> str:
    return files.checksum(file.open())


def _deletable(names: tuple[str, ...], exclude: list[str] | None, place: Place) -> tuple[str, ...]:
    """Objects that are neither excluded nor files of a snapshot, which are told."""
    found = tuple(name for name in names if not files.is_excluded(name, exclude or ()))
    gone = tuple(name for name in found if not place.is_of_snapshot(name))
    if kept := len(found) - len(gone):
        _say(f"vt: {kept} files of snapshots stay; `vt data snapshots delete` deletes those")
    return gone


def _show(compared: FolderComparison, gone: tuple[str, ...], verb: str) -> None:
    for pair in compared.of("new", "changed"):
        print(f"{verb} {plain(pair.name)} ({pair.what}, {in_units(pair.size)})")
    for name in gone:
        print(f"delete {plain(name)}")
    pairs = compared.of("new", "changed")
    size = in_units(sum(pair.size for pair in pairs))
    same = len(compared.of("same"))
    _say(f"vt: would {verb} {len(pairs)} files, {size}; {same} are the same")


def _report(verb: str, pairs: tuple[Pair, ...], compared: FolderComparison, more: str = "") -> None:
    size = in_units(sum(pair.size for pair in pairs))
    print(f"{verb} {len(pairs)} files, {size}; {len(compared.of('same'))} are the same{more}")


def _tell_kept(pairs: tuple[Pair, ...]) -> None:
    """Name the files that differ and were not replaced, and end with exit code 1."""
    if pairs:
        names = ", ".join(pair.name for pair in pairs[:5]) + (", …" if len(pairs) > 5 else "")
        _say(f"vt: {len(pairs)} differ and are kept: {names}. Hint: --replace")
        raise typer.Exit(1)


def _confirm(
    names: tuple[str, ...], place: Place, *, yes: bool, ask: Callable[..., bool] = typer.confirm
) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        _say(f"vt: {len(names)} objects would be deleted. Hint: --yes, where nobody can ask")
        raise typer.Exit(REFUSED)
    _say("\n".join(f"  delete {plain(name)}" for name in names[:20]))
    if not ask(f"Delete {len(names)} objects of {place}?"):
        raise typer.Exit(1)
