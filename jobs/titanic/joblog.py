"""Log of the job: written to the terminal and collected for ``training.log``."""

from __future__ import annotations

import io
import logging
import sys


class JobLog:
    """Log handler that writes to the terminal and keeps a copy.

    Warnings and errors go to stderr and everything else to stdout, because Vertex AI files a line
    under severity ERROR or INFO by the stream it came from.
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
        # The libraries' own chatter (matplotlib's font cache) is of no use to the reader.
        logging.getLogger("matplotlib").setLevel(logging.WARNING)

    def content(self) -> bytes:
        """Return the log so far."""
        return self._copy.getvalue().encode()
