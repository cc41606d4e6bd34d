"""Operations on one integer: steps."""

from __future__ import annotations

from microcoder.micro.operations import Kind, Operation, make_table

_SMALL = (2, 3, 4, 5, 6, 7, 8, 9)

STEPS = make_table(
    Kind.STEP,
    [
        Operation("add {k}", ("add {k}", "go up by {k}"), "x += {k}", ("x -= {k}", "x *= {k}"), ("take {k}",), _SMALL),
        Operation(
            "take {k}",
            ("take {k} away", "go down by {k}"),
            "x -= {k}",
            ("x += {k}", "x = {k} - x"),
            ("add {k}",),
            _SMALL,
        ),
        Operation(
            "scale {k}",
            ("multiply by {k}", "make it {k} times as much"),
            "x *= {k}",
            ("x += {k}", "x = x * x"),
            ("add {k}",),
            _SMALL,
        ),
        Operation(
            "square", ("square it", "multiply it by itself"), "x = x * x", ("x = x * 2", "x = x ** 3"), ("opposite",)
        ),
        Operation(
            "halve even",
            ("halve it if it is even", "when even, take half"),
            "x = x // 2 if x % 2 == 0 else x",
            ("x = x // 2", "x = x if x % 2 == 0 else x // 2"),
            ("double odd",),
        ),
        Operation(
            "double odd",
            ("double it if it is odd", "when odd, take twice as much"),
            "x = x * 2 if x % 2 else x",
            ("x = x * 2", "x = x if x % 2 else x * 2"),
            ("halve even",),
        ),
        Operation(
            "rest {k}",
            ("take it modulo {k}", "keep its remainder by {k}"),
            "x %= {k}",
            ("x //= {k}", "x = {k} - x"),
            ("take {k}",),
            (5, 7, 9),
        ),
        Operation(
            "size",
            ("drop its sign", "take its absolute value"),
            "x = abs(x)",
            ("x = -x", "x = max(x, 0)"),
            ("opposite",),
        ),
        Operation("opposite", ("turn its sign", "take its opposite"), "x = -x", ("x = abs(x)", "x = ~x"), ("size",)),
        Operation(
            "digitsum",
            ("take the sum of its digits", "add up its digits"),
            "x = sum(map(int, str(abs(x))))",
            ("x = len(str(abs(x)))", "x = abs(x) % 10"),
            ("size",),
        ),
        Operation(
            "cap {k}",
            ("let it be {k} at most", "cut it down to {k} if larger"),
            "x = min(x, {k})",
            ("x = max(x, {k})", "x = {k}"),
            ("floor {k}",),
            _SMALL,
        ),
        Operation(
            "floor {k}",
            ("let it be {k} at least", "lift it to {k} if smaller"),
            "x = max(x, {k})",
            ("x = min(x, {k})", "x = {k}"),
            ("cap {k}",),
            _SMALL,
        ),
    ],
)
