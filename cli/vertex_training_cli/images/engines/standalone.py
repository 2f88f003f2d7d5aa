"""Build one image in a separate process, for the Cloud Build service of the local cloud.

``python -m vertex_training_cli.images.engines.standalone IN OUT``: IN is a JSON file with the
fields of ``Build``. The digest is written to OUT, the log to stdout. Exit code 1: not built.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from vertex_training.errors import CommandError
from vertex_training_cli.images import engines
from vertex_training_cli.images.engines import Build


def main(arguments: list[str]) -> int:
    """Build the image that the file describes."""
    request, result = map(Path, arguments)
    fields = json.loads(request.read_text(encoding="utf-8"))
    build = Build(**{**fields, "archive": Path(fields["archive"])})
    try:  # a program of this machine builds for every project
        digest = engines.choose(None, "", "", is_local=True).build(build, _print)
    except CommandError as error:
        _print(str(error))  # the last lines of an ImageBuildError are in the log already
        return 1
    result.write_text(digest, encoding="utf-8")
    return 0


def _print(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
