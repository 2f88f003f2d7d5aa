"""The job's log: printed while it runs, and kept for ``training.log``."""

from __future__ import annotations

import io
import logging
import sys


class JobLog:
    """Prints log records and keeps a copy.

    Warnings and errors go to stderr, other records to stdout, because Vertex AI gives lines of
    stderr the severity ERROR and lines of stdout the severity INFO.
    """

    def __init__(self) -> None:
        self._copy = io.StringIO()
        copy = logging.StreamHandler(self._copy)
        copy.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
        out, err = logging.StreamHandler(sys.stdout), logging.StreamHandler(sys.stderr)
        out.addFilter(lambda record: record.levelno < logging.WARNING)
        err.setLevel(logging.WARNING)
        for handler in (out, err):
            handler.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
        logging.basicConfig(level=logging.INFO, handlers=[copy, out, err], force=True)
        # Messages of libraries (matplotlib's font cache) are of no use to the reader.
        logging.getLogger("matplotlib").setLevel(logging.WARNING)

    def content(self) -> bytes:
        """Return everything logged so far."""
        return self._copy.getvalue().encode()
