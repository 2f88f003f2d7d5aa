"""Command lines of ``vt data``."""

from __future__ import annotations

import json
import shlex
from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from google.cloud import storage

from vertex_training import stack as stacks_of_files
from vertex_training.errors import counted
from vertex_training.settings import stack_files
from vertex_training.settings.model import Settings
from vertex_training_cli.console import plain
from vertex_training_cli.data import cloud, files, transfer
from vertex_training_cli.data.cloud import Place, RemoteObject, in_units
from vertex_training_cli.data.files import LocalFile
from vertex_training_cli.engine import stacks
from vertex_training_cli.options import Format, FormatOption, SelectedStack
from vertex_training_cli.status import print_line

BucketArgument = Annotated[
    str,
    typer.Argument(
        metavar="BUCKET[/PREFIX]", help="Bucket of the stack file, or gs://BUCKET/PREFIX."
    ),
]
Exclude = Annotated[
    list[str] | None,
    typer.Option(help="Pattern of file names to skip, such as '*.tmp'. Repeatable."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only print the files to copy.")]


@contextmanager
def _place(text: str, stack: str | None) -> Iterator[tuple[storage.Client, Place, Settings, Path]]:
    """Yield the client, the place, the settings of the stack, and its checkout."""
    ref, _ = stacks.find_with_scripts(stack)
    raw = stack_files.read_raw(stacks_of_files.SCHEMA, ref.root, ref.stack)
    settings = stacks_of_files.read_settings(raw, ref.root)
    place = cloud.find(text, settings)
    try:
        client = cloud.connect(ref, lambda line: print_line(f"vt: {line}"))
        yield client, place, settings, ref.root
    except KeyboardInterrupt:
        print_line("vt: interrupted. Complete files stay; run the command again to continue.")
        raise


def push(
    bucket: BucketArgument,
    folder: Annotated[Path, typer.Argument(help="Folder or file to upload.")],
    stack: SelectedStack = None,
    exclude: Exclude = None,
    dry_run: DryRun = False,
) -> None:
    """Upload new and changed files of a folder to a bucket.

    Files are compared by size and CRC32C. If a file looks like a secret, nothing is uploaded.
    Nothing is deleted.

    Example: `vt data push data DIR --exclude '*.tmp' --dry-run`.

    Exit code: 0 all files uploaded, 1 a file was not uploaded, 130 interrupted.
    """
    with _place(bucket, stack) as (client, place, settings, root):
        local_files, links = files.scan(folder, exclude or ())
        if links:
            print_line(f"vt: {links} links skipped")
        cloud.ensure_takes(place, (), settings)
        remote = {item.name: item for item in cloud.objects(client, place)}
        sent = [file for file in local_files if not file.is_same(remote.get(file.name))]
        cloud.ensure_takes(place, (file.name for file in sent), settings)
        transfer.refuse_secrets(sent, settings, root, print_line)
        if any(file.size >= transfer.LARGE for file in sent):
            rsync = f"gcloud storage rsync --recursive {shlex.quote(str(folder))} {place}"
            print_line(f"vt: for large files, `{rsync}` can resume an interrupted upload")
        same = len(local_files) - len(sent)
        if dry_run:
            _show("send", sent, remote, same)
            return
        transfer.push(client, place, sent, remote)
        _report("sent", sent, same)


def pull(
    bucket: BucketArgument,
    folder: Annotated[Path, typer.Argument(help="Target folder. It is created if missing.")],
    stack: SelectedStack = None,
    exclude: Exclude = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace local files that differ from the bucket's.")
    ] = False,
    dry_run: DryRun = False,
) -> None:
    """Download the objects of a bucket that are missing from a folder.

    Local files that differ from the bucket's are listed and not replaced, except with --replace.
    Nothing is deleted.

    Exit code: 0 all files downloaded, 1 a file was not downloaded or differs, 130 interrupted.
    """
    with _place(bucket, stack) as (client, place, _, _):
        remote = [item for item in cloud.objects(client, place)
                  if not files.is_excluded(item.name, exclude or ())]  # fmt: skip
        transfer.ensure_writable(folder, [item.name for item in remote])
        here = {item.name: file for item in remote if (file := files.at(folder, item.name))}
        new = [item for item in remote if item.name not in here]
        changed = [item for item in remote
                   if item.name in here and not here[item.name].is_same(item)]  # fmt: skip
        same = len(here) - len(changed)
        if dry_run:
            _show("fetch", [*new, *changed], here, same)
            return
        fetched = [*new, *changed] if replace else new
        transfer.pull(client, place, folder, fetched)
        _report("fetched", fetched, same)
        if changed and not replace:
            names = ", ".join(item.name for item in changed[:5])
            more = ", …" if len(changed) > 5 else ""
            kept = f"{len(changed)} local files differ and were not replaced: {names}{more}"
            print_line(f"vt: {kept}. Hint: --replace")
            raise typer.Exit(1)


def ls(
    bucket: BucketArgument,
    stack: SelectedStack = None,
    format_: FormatOption = Format.TEXT,
) -> None:
    """List the objects of a bucket below a prefix: size in bytes, modification time (UTC), name."""
    with _place(bucket, stack) as (client, place, _, _):
        count = total = 0
        for item in cloud.objects(client, place):
            count, total = count + 1, total + item.size
            name = place.prefix + item.name
            if format_ is Format.JSON:
                row = {"name": name, "size": item.size, "crc32c": item.crc32c}
                print(json.dumps({**row, "updated": item.updated, "generation": item.generation}))
            else:
                print(f"{item.size:>14}  {item.updated}  {plain(name)}")
        print_line(f"vt: {counted(count, 'object')}, {in_units(total)}, in gs://{place.bucket}")


def _show(
    verb: str, objects: Sequence[LocalFile | RemoteObject], known: Container[str], same: int
) -> None:
    for item in sorted(objects, key=lambda entry: entry.name):
        what = "changed" if item.name in known else "new"
        print(f"{verb} {plain(item.name)} ({what}, {in_units(item.size)})")
    size = in_units(sum(item.size for item in objects))
    print_line(f"vt: would {verb} {counted(len(objects), 'file')}, {size}; {same} unchanged")


def _report(verb: str, objects: Sequence[LocalFile | RemoteObject], same: int) -> None:
    size = in_units(sum(item.size for item in objects))
    print(f"{verb} {counted(len(objects), 'file')}, {size}; {same} unchanged")
