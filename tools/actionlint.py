"""Install actionlint into .venv/bin, unless the pinned version is there: run by ``make check``."""

import sys

from toolchain.actionlint import ensure_actionlint
from toolchain.console import SetupError
from toolchain.layout import Layout


def main() -> int:
    """Exit codes: 0 installed, 1 not available; the reason and a hint go to stderr."""
    try:
        print(f"actionlint: {ensure_actionlint(Layout.of_this_checkout())}")
    except SetupError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
