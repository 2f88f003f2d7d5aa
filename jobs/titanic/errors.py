"""Exception that the job reports as a single line."""

from __future__ import annotations


class JobError(Exception):
    """A mistake in the data, the arguments or the permissions that an operator can fix.

    The message says what is wrong, where, and what to do; ``titanic.task`` prints it without a
    traceback and exits with 1. Anything else that is raised is a defect of this package.
    """
