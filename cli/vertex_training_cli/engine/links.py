"""Links that lead out of a checkout: what they point at is not the checkout's to change."""

from __future__ import annotations

from pathlib import Path

from vertex_training.settings.project_files import PROJECT_FILE, leaves


def link_out(file: Path, *, of_user: bool = False) -> Path | None:
    """A link on the way to a file that leaves the checkout or project that it lies in, or none.

    A link that lies in neither is the user's own; if the file itself is one, only ``of_user``
    lets it be.
    """
    full = file.absolute()
    for link in (each for each in (full, *full.parents) if each.is_symlink()):
        own = link.parent if link == full and not of_user else None
        top = next((each for each in link.parents if _is_top(each)), own)
        if top is not None and leaves(top, link):
            return link
    return None


def _is_top(folder: Path) -> bool:
    return (folder / ".git").exists() or (folder / PROJECT_FILE).is_file()
