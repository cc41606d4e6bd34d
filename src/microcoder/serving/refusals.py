"""Requests that are not served: one exception, and the one way it is written as an answer."""

from __future__ import annotations

import json
import math

_PISTON = "/api/v2"


class Refused(Exception):
    """A request that is not served, and why."""

    def __init__(self, status: int, message: str, *, retry_after_seconds: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        """The HTTP status: 4xx for what the client must change, 429, 503 and 504 for what may be sent again."""
        self.message = message
        self.retry_after_seconds = retry_after_seconds

    def headers(self) -> dict[str, str]:
        """Return the headers that belong to it."""
        headers = {"WWW-Authenticate": 'Bearer realm="microcoder"'} if self.status == 401 else {}
        if self.retry_after_seconds is not None:
            headers["Retry-After"] = str(max(1, math.ceil(self.retry_after_seconds)))
        return headers

    def body(self, path: str) -> bytes:
        """Return the answer's JSON, in the words of the dialect that the path belongs to."""
        key = "message" if path.startswith(_PISTON) else "detail"
        return json.dumps({key: self.message}).encode()
