"""`make setup`: leaves a working environment in .venv, `pulumi` and `vt` included.

Runs before anything is installed, so it and the package `toolchain` beside it use the standard
library only. This file stays readable for any Python 3, to be able to say which one is needed.
"""

import sys

MINIMUM = (3, 11)

if sys.version_info < MINIMUM:
    sys.exit(  # no newer way of formatting: it must run on the Python it complains about
        "setup: Python %d.%d or newer is needed (this is %d.%d, %s). "
        "Hint: make setup PYTHON=python3.12" % (MINIMUM + sys.version_info[:2] + (sys.executable,))
    )

from toolchain.main import main  # noqa: E402 - only a new enough Python can read that package

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
