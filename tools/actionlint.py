"""`make check` calls this where .venv has no actionlint yet, or an old one."""

import sys

from toolchain.actionlint import ensure_actionlint
from toolchain.console import SetupError
from toolchain.layout import Layout


def main() -> int:
    """Exit codes: 0 in place, 1 it cannot be had; the reason and a hint go to stderr."""
    try:
        print(f"actionlint: {ensure_actionlint(Layout.of_this_checkout())}")
    except SetupError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
