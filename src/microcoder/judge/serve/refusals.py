"""Requests that are not served: one exception, and the one way it is written as an answer."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from microcoder.judge.core.errors import DataError, EvaluatorFault

_PISTON = "/api/v2"
_MAX_FAULTS_SHOWN = 5


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


def refusal_of(error: Exception) -> Refused:
    """Return the answer to a request that raised an exception."""
    match error:
        case Refused():
            return error
        case RequestValidationError():
            return Refused(422, explain([{**fault, "loc": fault["loc"][1:]} for fault in error.errors()]))
        case HTTPException():
            return Refused(error.status_code, str(error.detail))
        case DataError():
            return Refused(422, str(error)[:1000])
        case EvaluatorFault():
            return Refused(503, str(error)[:1000], retry_after_seconds=5)
        case _:
            return Refused(500, "the service failed; its log says how")


def explain(faults: Sequence[Mapping[str, Any]]) -> str:
    """Say where and what, without what was sent: that may be large, and is somebody's data."""
    shown = [
        f"{'.'.join(str(part)[:60] for part in fault['loc']) or 'body'}: {str(fault['msg'])[:200]}"
        for fault in faults[:_MAX_FAULTS_SHOWN]
    ]
    left = len(faults) - len(shown)
    return "; ".join(shown) + (f"; and {left} more" if left else "")
