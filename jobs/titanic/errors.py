"""The exception that the job reports as one line."""

from __future__ import annotations


class JobError(Exception):
    """A mistake in the data, the arguments or the permissions that an operator can fix.

    The message says what is wrong, where, and what to do. ``titanic.task`` prints it without a
    traceback and exits with 1. Any other exception is a defect of this package.
    """
