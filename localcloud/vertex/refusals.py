"""Why a job cannot start: its `error`, with a code of google.rpc.Code."""

from __future__ import annotations

NOT_FOUND, PERMISSION_DENIED, RESOURCE_EXHAUSTED, FAILED_PRECONDITION = 5, 7, 8, 9


class Refused(Exception):
    """The job cannot start: the code and the text of its `error`."""

    def __init__(self, code: int, message: str) -> None:
        self.code = code
        self.message = message
        super().__init__(message)
