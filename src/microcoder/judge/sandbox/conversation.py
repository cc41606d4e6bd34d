"""A conversation: the processes of a test and of an answer call each other's functions.

The test's process holds handles in place of the answer's functions. A call of one is a message to
the answer's process, which calls the function and replies with its value or its exception. An
argument that is a function of the test likewise is a handle in the answer's process, see `handles`.

A message is JSON behind its length, and nothing of it is executed:

    op, on, names    what to do with which object: a request; a reply has `raised` in their place
    values           arguments of a request; the value of a reply, or its exception
    states           of objects that are new or have changed, see `shared_values`
    forget           numbers of objects that are not followed any more

The last value of each message is what else happened, see `surroundings`.
"""

from __future__ import annotations

import asyncio
import json
import operator
import os
import struct
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from microcoder.judge.sandbox.shared_values import SharedValues
from microcoder.judge.sandbox.surroundings import Surroundings
from microcoder.judge.sandbox.value_kinds import Malformed, describe_error

MOST_BYTES_OF_ANSWERS = 16 << 20
"""Bytes of the longest message that a test reads."""
MOST_BYTES_OF_TESTS = 1 << 30
"""Bytes of the longest message that an answer reads; its memory ends before."""
FROM_ANSWER = "_from_answer"
"""Attribute of an exception that came from the answer; its text, as a traceback ends."""
_HEAD = struct.Struct("<Q")
"""Layout of a message's length."""
_BLOCK = 1 << 16
"""Bytes that are read at a time."""
_dump = json.JSONEncoder(separators=(",", ":")).encode


class ConversationEnded(BaseException):
    """The other process has ended, or closed its end."""


class TooLong(BaseException):
    """A message is longer than any may be."""


class Channel:
    """Two pipes: messages in, messages out."""

    def __init__(self, incoming: int, outgoing: int, *, most_bytes: int) -> None:
        """Take over two descriptors; no message of more bytes is read."""
        self._incoming = incoming
        self._outgoing = outgoing
        self._most_bytes = most_bytes

    def send(self, message: bytes) -> None:
        """Write a message; raises ConversationEnded."""
        data = memoryview(_HEAD.pack(len(message)) + message)
        try:
            while data:
                data = data[os.write(self._outgoing, data) :]
        except OSError:
            raise ConversationEnded from None

    def receive(self) -> bytes:
        """Wait for a message; raises ConversationEnded, or TooLong."""
        (length,) = _HEAD.unpack(self._read(_HEAD.size))
        if length > self._most_bytes:
            raise TooLong
        return self._read(length)

    def _read(self, length: int) -> bytes:
        blocks = []
        missing = length
        while missing:
            try:
                block = os.read(self._incoming, min(missing, _BLOCK))
            except OSError:
                block = b""
            if not block:
                raise ConversationEnded
            blocks.append(block)
            missing -= len(block)
        return b"".join(blocks)


def _run_coroutine(awaitable: Any) -> Any:
    async def wait() -> Any:
        return await awaitable

    return asyncio.run(wait())


_OPERATORS = ("eq", "lt", "le", "gt", "ge", "add", "sub", "mul")
"""Operations that are functions of `operator` by the same name."""
_OPERATIONS: Mapping[str, Callable[..., Any]] = {
    "call": lambda function, *arguments, **named: function(*arguments, **named),
    "get": getattr,
    "set": setattr,
    "len": len,
    "iter": iter,
    "next": next,
    "send": lambda generator, value: generator.send(value),
    "item": operator.getitem,
    "put": operator.setitem,
    "drop": operator.delitem,
    "text": str,
    "repr": repr,
    "int": int,
    "float": float,
    "enter": lambda manager: manager.__enter__(),
    "leave": lambda manager: manager.__exit__(None, None, None),
    "await": _run_coroutine,
    "isinstance": lambda kind, value: isinstance(value, kind),
    "hash": hash,
    "bool": bool,
    "contains": operator.contains,
    **{name: getattr(operator, name) for name in _OPERATORS},
}
"""What can be done with an object of the other side."""


class Peer:
    """One side of a conversation: it asks the other, and serves what that asks."""

    def __init__(
        self,
        channel: Channel,
        values: SharedValues,
        surroundings: Surroundings,
        *,
        permit: Callable[[str, Any, Sequence[Any]], bool] | None = None,
        give_up: Callable[[BaseException], object] | None = None,
        note_first: Callable[[], object] | None = None,
    ) -> None:
        """Join a conversation.

        Args:
            channel: its pipes.
            values: what both sides share; the side of the test forgets what nobody holds.
            surroundings: what else crosses.
            permit: whether the other side may do an operation with an object of this one, given
                its arguments; by default it may do all.
            give_up: the side of the test: called where the conversation is at its end, and does
                not return. No `except` of the test is to catch that.
            note_first: called before the first request.
        """
        self.values = values
        self.num_calls = 0
        """Requests of this side."""
        self.latest: object = None
        """What the latest call of this side returned."""
        self.is_closed = False
        self._channel = channel
        self._surroundings = surroundings
        self._permit = permit
        self._give_up = give_up
        self._note_first = note_first
        self._depth = 0
        self._lock = threading.RLock()

    def begin(self, settings: Mapping[str, Any]) -> Any:
        """Send the first message, which is the test's; return what the answer offers."""
        try:
            self._channel.send(_dump(settings).encode())
            message = self._receive()
            offer, happened = self._unpack(message, 2)
            self._surroundings.adopt(happened)
        except (ConversationEnded, TooLong, Malformed) as end:
            if self._give_up is not None:
                self._give_up(end)
            raise
        return offer

    def ask(self, operation: str, number: int, *arguments: Any, **named: Any) -> Any:
        """Have the other side do something with one of its objects; return or raise the result."""
        if self.is_closed:
            raise RuntimeError("the conversation with the answer is over")
        with self._lock:
            self._depth += 1
            try:
                reply = self._exchange(operation, number, arguments, named)
            except (ConversationEnded, TooLong, Malformed) as end:
                if self._give_up is not None:
                    self._give_up(end)
                raise
            finally:
                self._depth -= 1
        value, is_raised = reply
        if not is_raised:
            self.latest = value
            return value
        if self._give_up is not None:
            value.__dict__[FROM_ANSWER] = describe_error(value)
        raise value from None

    def _exchange(
        self,
        operation: str,
        number: int,
        arguments: Sequence[Any],
        named: Mapping[str, Any],
    ) -> tuple[Any, bool]:
        """Return what the other side replies, and whether that is an exception."""
        forget: list[int] = []
        # In a call of the other side some are held by its frames alone.
        if self._give_up is not None and self._depth == 1:
            forget = self.values.sweep()
        self.num_calls += 1
        if self.num_calls == 1 and self._note_first is not None:
            self._note_first()
        around = self._surroundings.describe()
        parts, states = self.values.pack([*arguments, *named.values(), around])
        head = {"op": operation, "on": number, "names": list(named), "forget": forget}
        self._send(head, parts, states)
        while True:
            message = self._receive()
            if "op" in message:
                self.serve(message)
                continue
            value, happened = self._unpack(message, 2)
            self._surroundings.adopt(happened)
            is_raised = message.get("raised") is True
            if is_raised and not isinstance(value, BaseException):
                raise Malformed("something else than an exception was raised")
            return value, is_raised

    def serve(self, message: Mapping[str, Any]) -> None:
        """Do what the other side asks, and reply."""
        is_raised = False
        try:
            result = self._perform(message)
        except (ConversationEnded, TooLong, Malformed):
            raise
        except BaseException as error:
            result = error
            is_raised = True
        self.reply(result, is_raised=is_raised)

    def reply(self, result: object, *, is_raised: bool) -> None:
        """Send a result, or an exception; in place of a result that cannot be sent, the reason."""
        around = self._surroundings.describe()
        try:
            parts, states = self.values.pack([result, around])
        except Exception as error:
            reason = TypeError(f"the value cannot be sent: {describe_error(error)}")
            parts, states = self.values.pack([reason, around])
            is_raised = True
        self._send({"raised": is_raised}, parts, states)

    def _perform(self, message: Mapping[str, Any]) -> Any:
        forget = message.get("forget")
        names = message.get("names")
        operation = message.get("op")
        if type(forget) is not list or type(names) is not list or type(operation) is not str:
            raise Malformed("a request without names")
        if self._permit is None:
            self.values.forget(forget)
        *arguments, happened = self._unpack(message)
        self._surroundings.adopt(happened)
        target = self.values.find(message.get("on"))
        perform = _OPERATIONS.get(operation)
        if perform is None or len(names) > len(arguments):
            raise Malformed(f"the request {operation[:40]!r}")
        count = len(arguments) - len(names)
        if self._permit is not None and not self._permit(operation, target, arguments):
            raise TypeError(f"an answer may not do this with a {type(target).__name__} of the test")
        named = dict(zip(names, arguments[count:], strict=True))
        return perform(target, *arguments[:count], **named)

    def _unpack(self, message: Mapping[str, Any], count: int = 0) -> list[Any]:
        values = self.values.unpack(message.get("values"), message.get("states"))
        if not values or (count and len(values) != count):
            raise Malformed("a message with another number of values")
        return values

    def _send(self, head: Mapping[str, Any], parts: list[Any], states: list[str]) -> None:
        start = _dump({**head, "values": parts})[:-1]
        self._channel.send(f'{start},"states":[{",".join(states)}]}}'.encode())

    def _receive(self) -> dict[str, Any]:
        data = self._channel.receive()
        try:
            message = json.loads(data)
        # A text may be wrong, nested too deeply, or hold a number that is too long.
        except (ValueError, RecursionError):
            message = None
        if type(message) is not dict:
            raise Malformed("no message")
        return message

    def serve_all(self) -> None:
        """Serve the other side until it ends the conversation."""
        while True:
            self.serve(self._receive())
