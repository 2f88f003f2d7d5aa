"""Install a working environment into .venv, with ``pulumi`` and ``vt``: ``make setup``.

This script runs before any package is installed, so it uses only the standard library. Any Python 3
can parse this file: an old Python prints a message instead of a syntax error.
"""

import os
import sys

MINIMUM = (3, 11)

if sys.version_info < MINIMUM:
    sys.exit(  # old formatting syntax: the rejected Python must run this
        "setup: Python %d.%d or later is required (this is %d.%d, %s). Hint: make setup "
        "PYTHON=python3.12" % (MINIMUM + sys.version_info[:2] + (sys.executable,))
    )

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "cli"))

# Older versions of Python cannot parse this package.
from vertex_training_cli.toolchain.main import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
