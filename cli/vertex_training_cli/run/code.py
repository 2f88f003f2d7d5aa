"""The code of a script's run: the files of its folder, as an archive for the job.

The folder goes along without what ``.gitignore`` and ``.vtignore`` name, hidden files, caches, and
files that hold a secret or are too large. Only regular files count: a link out of the folder, a
device or a pipe is left out.
"""

from __future__ import annotations

import io
import os
import stat
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pathspec import GitIgnoreSpec

from vertex_training.errors import CommandError
from vertex_training.plan.packages import REQUIREMENTS
from vertex_training.secret_rules.files import File, scan

#: Files with patterns of gitignore(5). The patterns of the second file take precedence.
IGNORE_FILES: Final = (".gitignore", ".vtignore")
#: Folders that are never sent. A virtual environment is recognized by its pyvenv.cfg.
SKIPPED_FOLDERS: Final = ("__pycache__", "node_modules")
MAX_FILE: Final = 25 * 2**20
MAX_TOTAL: Final = 100 * 2**20
MAX_FILES: Final = 10_000
#: Maximum bytes of a file, and of all files, to scan for secrets. Larger scans would delay a run.
_SCANNED_FILE: Final = 64 * 2**10
_SCANNED_TOTAL: Final = 2**20
#: Maximum number of names printed for each reason; further names are counted.
_SHOWN: Final = 3

_IGNORED: Final = "ignored"
_LINK: Final = "a link to a file outside of the folder"
_SPECIAL: Final = "a link to a folder, a device or a pipe"
_LARGE: Final = f"larger than {MAX_FILE >> 20} MiB"
_SECRET: Final = "may contain a secret"
_UNREADABLE: Final = "not readable"


@dataclass(slots=True)
class Code:
    """Files by their paths in the archive, and reasons for files that were skipped."""

    files: dict[str, Path] = field(default_factory=dict[str, Path])
    left_out: dict[str, str] = field(default_factory=dict[str, str])
    total: int = 0

    def add(self, name: str, file: Path) -> None:
        """Add a file.

        Raises:
            CommandError: the files are too many or too large.
        """
        self.total += 0 if name in self.files else file.stat().st_size
        self.files[name] = file
        self.left_out.pop(name, None)
        if len(self.files) > MAX_FILES or self.total > MAX_TOTAL:
            text = (
                f"the code of a script run may have at most {MAX_FILES:,} files and "
                f"{MAX_TOTAL >> 20} MiB; "
            )
            hint = "list unneeded files in .vtignore, or send only the script by --no-code"
            raise CommandError(f"{text}the folder of the script exceeds this limit.", hint)

    @property
    def note(self) -> str:
        """Return one line on the skipped files; empty if there are none."""
        parts: list[str] = []
        for reason in sorted({*self.left_out.values()}):
            names = sorted(name for name, why in self.left_out.items() if why == reason)
            more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
            parts.append(f"{', '.join(names[:_SHOWN])}{more} ({reason})")
        return (
            (f"not sent with the script: {'; '.join(parts)}. Hint: add files by --with PATH")
            if parts
            else ""
        )

    def archive(self) -> bytes:
        """Return a tar archive that depends only on names and content."""
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar:
            for name, file in sorted(self.files.items()):
                entry, content = tarfile.TarInfo(name), file.read_bytes()
                entry.size = len(content)
                entry.mode = 0o755 if os.access(file, os.X_OK) else 0o644
                tar.addfile(entry, io.BytesIO(content))
        return packed.getvalue()


def collect(script: Path, added: Sequence[Path], *, alone: bool = False) -> Code:
    """Return the code of a script: the files of its folder and the ``added`` paths.

    With ``alone`` the script and its requirements in place of the folder.

    Raises:
        CommandError: an added path cannot go along, or the files are too many or too large.
    """
    folder, code = script.parent.resolve(), Code()
    requirements = folder / REQUIREMENTS
    if alone:
        if requirements.is_file() and not _reason(requirements, folder):
            code.add(REQUIREMENTS, requirements)
    else:
        for file in _files_below(folder, folder, _specs_above(folder), code.left_out):
            code.add(file.relative_to(folder).as_posix(), file)
        _leave_out_secrets(code)
    code.add(script.name, script)
    for path in added:
        _add(path, folder, code)
    return code


def _add(path: Path, folder: Path, code: Code) -> None:
    """Add the files of ``--with``, even if they are ignored, hidden or large."""
    if not path.exists():
        raise CommandError(f"--with: {path} does not exist.")
    top = path.resolve()
    within = top.relative_to(folder) if top.is_relative_to(folder) else Path(top.name)
    if not top.is_dir():
        if reason := _reason(top, top.parent):
            raise CommandError(f"--with: cannot send {path}: {reason}.")
        code.add(within.as_posix(), top)
        return
    code.left_out.pop(f"{within.as_posix()}/", None)
    left_out: dict[str, str] = {}
    for file in _files_below(top, top, None, left_out):
        code.add((within / file.relative_to(top)).as_posix(), file)
    code.left_out |= {(within / name).as_posix(): reason for name, reason in left_out.items()}


#: A folder, and the patterns of its ignore files.
_Specs = tuple[tuple[Path, GitIgnoreSpec], ...]


def _files_below(
    top: Path, folder: Path, specs: _Specs | None, left_out: dict[str, str]
) -> Iterator[Path]:
    """Yield regular files below a folder, without ignored ones; without ``specs`` also hidden ones.

    The others are noted in ``left_out``, but for hidden files and caches.
    """
    with_ignored = specs is None
    specs = () if specs is None else (*specs, *_specs_of(folder))
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        left_out[f"{folder.relative_to(top).as_posix()}/"] = _UNREADABLE
        return
    for entry in entries:
        path = Path(entry.path)
        name = path.relative_to(top).as_posix()
        is_folder = entry.is_dir(follow_symlinks=False)
        if is_folder and (entry.name in SKIPPED_FOLDERS or (path / "pyvenv.cfg").exists()):
            continue
        if entry.name.startswith(".") and not with_ignored:
            if entry.name.startswith(".env") and not is_folder:
                left_out[name] = _SECRET
        elif _is_ignored(path, specs, is_folder=is_folder):
            left_out[f"{name}/" if is_folder else name] = _IGNORED
        elif is_folder:
            yield from _files_below(top, path, None if with_ignored else specs, left_out)
        elif reason := _reason(path, top) or ("" if with_ignored else _too_large(path)):
            left_out[name] = reason
        else:
            yield path


def _reason(path: Path, top: Path) -> str:
    """Return the reason why a file cannot be sent; empty if it can."""
    try:
        if path.is_symlink() and not path.resolve(strict=True).is_relative_to(top):
            return _LINK
        if not stat.S_ISREG(path.stat().st_mode):
            return _SPECIAL
    except (OSError, RuntimeError):  # a link to nothing, or to itself
        return _LINK
    return "" if os.access(path, os.R_OK) else _UNREADABLE


def _too_large(path: Path) -> str:
    return _LARGE if path.stat().st_size > MAX_FILE else ""


def _specs_above(folder: Path) -> _Specs:
    """Return the ignore patterns of the parent folders, up to the top of the checkout."""
    above = folder.parents
    top = next((parent for parent in (folder, *above) if (parent / ".git").exists()), folder)
    between = [parent for parent in reversed(above) if parent.is_relative_to(top)]
    return tuple(spec for parent in between for spec in _specs_of(parent))


def _specs_of(folder: Path) -> Iterator[tuple[Path, GitIgnoreSpec]]:
    for name in IGNORE_FILES:
        file = folder / name
        if file.is_file() and not _reason(file, folder) and not _too_large(file):
            lines = file.read_text("utf-8", errors="replace").splitlines()
            try:
                yield folder, GitIgnoreSpec.from_lines(lines)
            except ValueError as error:
                raise CommandError(f"cannot read {file}: {error}") from None


def _is_ignored(path: Path, specs: _Specs, *, is_folder: bool) -> bool:
    """Return True if the last pattern that matches a path ignores it."""
    for folder, spec in reversed(specs):
        name = path.relative_to(folder).as_posix()
        verdict = spec.check_file(f"{name}/" if is_folder else name).include
        if verdict is not None:
            return verdict
    return False


def _leave_out_secrets(code: Code) -> None:
    """Skip files with secrets: key files by their names, small files by their content."""
    sized = [(name, file, file.stat().st_size) for name, file in code.files.items()]
    scanned: list[File] = []
    left = _SCANNED_TOTAL
    for name, file, size in sized:
        if size <= min(_SCANNED_FILE, left):
            left -= size
            scanned.append(File(name, size, file.read_bytes))
        else:  # its name alone
            scanned.append(File(name, 0, bytes))
    for name in {problem.location.file for problem in scan(scanned, ()).problems}:
        del code.files[name]
        code.left_out[name] = _SECRET
