"""Operations on a list of numbers: filters, maps, measures, arrangements."""

from __future__ import annotations

from microcoder.micro.operations import Kind, Operation, make_table

_SMALL = (2, 3, 4, 5, 6, 7, 8, 9)
_DIVISORS = (3, 4, 5, 6, 7)

FILTERS = make_table(
    Kind.FILTER,
    [
        Operation(
            "even", ("even ones", "ones that two divides"), "x % 2 == 0", ("x % 2 == 1", "x // 2 == 0"), ("odd",)
        ),
        Operation(
            "odd", ("odd ones", "ones that two does not divide"), "x % 2 == 1", ("x % 2 == 0", "x // 2 == 1"), ("even",)
        ),
        Operation(
            "positive", ("positive ones", "ones over zero"), "x > 0", ("x >= 0", "x != 0"), ("negative", "natural")
        ),
        Operation("negative", ("negative ones", "ones under zero"), "x < 0", ("x <= 0", "x != 0"), ("positive",)),
        Operation(
            "natural",
            ("ones that are zero or more", "ones not under zero"),
            "x >= 0",
            ("x > 0", "x <= 0"),
            ("positive",),
        ),
        Operation(
            "over {k}",
            ("ones over {k}", "ones strictly above {k}"),
            "x > {k}",
            ("x >= {k}", "x < {k}"),
            ("least {k}", "under {k}"),
            _SMALL,
        ),
        Operation(
            "under {k}",
            ("ones under {k}", "ones strictly below {k}"),
            "x < {k}",
            ("x <= {k}", "x > {k}"),
            ("most {k}", "over {k}"),
            _SMALL,
        ),
        Operation(
            "least {k}",
            ("ones of {k} or more", "ones not below {k}"),
            "x >= {k}",
            ("x > {k}", "x <= {k}"),
            ("over {k}", "most {k}"),
            _SMALL,
        ),
        Operation(
            "most {k}",
            ("ones of {k} or less", "ones not above {k}"),
            "x <= {k}",
            ("x < {k}", "x >= {k}"),
            ("under {k}", "least {k}"),
            _SMALL,
        ),
        Operation(
            "multiple {k}",
            ("multiples of {k}", "ones that {k} divides"),
            "x % {k} == 0",
            ("x // {k} == 0", "{k} % x == 0"),
            ("unmultiple {k}",),
            _DIVISORS,
        ),
        Operation(
            "unmultiple {k}",
            ("ones that are no multiple of {k}", "ones that {k} does not divide"),
            "x % {k} != 0",
            ("x % {k} == 0", "x // {k} != 0"),
            ("multiple {k}",),
            _DIVISORS,
        ),
        Operation(
            "far {k}",
            ("ones more than {k} away from zero", "ones whose size is over {k}"),
            "abs(x) > {k}",
            ("x > {k}", "abs(x) >= {k}"),
            ("over {k}",),
            _SMALL,
        ),
        Operation(
            "ending {k}",
            ("ones that end in {k}", "ones with last digit {k}"),
            "abs(x) % 10 == {k}",
            ("x % {k} == 0", "x // 10 == {k}"),
            ("multiple {k}",),
            (1, 2, 3, 4, 5, 6, 7, 8, 9),
        ),
        Operation(
            "not {k}",
            ("ones other than {k}", "ones that differ from {k}"),
            "x != {k}",
            ("x == {k}", "x > {k}"),
            ("over {k}",),
            _SMALL,
        ),
    ],
)

MAPS = make_table(
    Kind.MAP,
    [
        Operation("square", ("square", "second power"), "x * x", ("x * 2", "x ** 3"), ("double", "cube")),
        Operation("cube", ("cube", "third power"), "x ** 3", ("x * 3", "x * x"), ("square",)),
        Operation("double", ("double", "sum with itself"), "x * 2", ("x * x", "x + 2"), ("square",)),
        Operation(
            "plus {k}",
            ("sum with {k}", "value raised by {k}"),
            "x + {k}",
            ("x - {k}", "x * {k}"),
            ("minus {k}", "times {k}"),
            _SMALL,
        ),
        Operation(
            "minus {k}",
            ("value lowered by {k}", "difference from {k} (itself less {k})"),
            "x - {k}",
            ("{k} - x", "x + {k}"),
            ("plus {k}",),
            _SMALL,
        ),
        Operation(
            "times {k}", ("product with {k}", "{k}-fold"), "x * {k}", ("x + {k}", "x ** 2"), ("plus {k}",), _SMALL
        ),
        Operation("size", ("absolute value", "distance from zero"), "abs(x)", ("-x", "x"), ("opposite",)),
        Operation("opposite", ("opposite", "value with the sign turned"), "-x", ("abs(x)", "x"), ("size",)),
        Operation(
            "rest {k}",
            ("remainder by {k}", "value modulo {k}"),
            "x % {k}",
            ("x // {k}", "{k} - x"),
            ("part {k}",),
            _DIVISORS,
        ),
        Operation(
            "part {k}",
            ("whole quotient by {k}", "{k}-th part rounded down"),
            "x // {k}",
            ("x % {k}", "x / {k}"),
            ("rest {k}",),
            _DIVISORS,
        ),
        Operation("unit", ("last digit", "ones digit"), "abs(x) % 10", ("abs(x) // 10", "x % 2"), ("digitsum",)),
        Operation(
            "digitsum",
            ("digit sum", "total of its digits"),
            "sum(map(int, str(abs(x))))",
            ("len(str(abs(x)))", "abs(x) % 10"),
            ("unit", "width"),
        ),
        Operation(
            "width",
            ("digit count", "number of digits"),
            "len(str(abs(x)))",
            ("sum(map(int, str(abs(x))))", "len(str(x))"),
            ("digitsum",),
        ),
    ],
)

MEASURES = make_table(
    Kind.MEASURE,
    [
        Operation("sum", ("sum", "total"), "sum(a)", ("len(a)", "max(a)"), ("count",)),
        Operation("count", ("count", "number of them"), "len(a)", ("sum(a)", "len(set(a))"), ("sum", "variety")),
        Operation(
            "max",
            ("largest, or 0 if none is there", "maximum (0 for none)"),
            "max(a, default=0)",
            ("max(a)", "min(a, default=0)"),
            ("min",),
        ),
        Operation(
            "min",
            ("smallest, or 0 if none is there", "minimum (0 for none)"),
            "min(a, default=0)",
            ("min(a)", "max(a, default=0)"),
            ("max",),
        ),
        Operation(
            "variety",
            ("number of different ones", "count without repeats"),
            "len(set(a))",
            ("len(a)", "sum(set(a))"),
            ("count",),
        ),
        Operation(
            "summod {k}",
            ("sum modulo {k}", "remainder of the total by {k}"),
            "sum(a) % {k}",
            ("sum(a) // {k}", "sum(a)"),
            ("sum",),
            (3, 5, 7, 9),
        ),
        Operation(
            "last",
            ("last one, or 0 if none is there", "final one (0 for none)"),
            "a[-1] if a else 0",
            ("a[-1]", "a[0] if a else 0"),
            ("first",),
        ),
        Operation(
            "first",
            ("first one, or 0 if none is there", "leading one (0 for none)"),
            "a[0] if a else 0",
            ("a[0]", "a[-1] if a else 0"),
            ("last",),
        ),
        Operation(
            "any",
            ("word YES if any is there, else NO", "answer YES or NO: is any there"),
            '"YES" if a else "NO"',
            ('"NO" if a else "YES"', '"YES" if all(a) else "NO"'),
            ("count",),
        ),
        Operation(
            "spread",
            ("gap from smallest to largest (0 for none)", "spread, or 0 if none is there"),
            "max(a) - min(a) if a else 0",
            ("max(a) - min(a)", "max(a, default=0)"),
            ("max",),
        ),
    ],
)

ARRANGEMENTS = make_table(
    Kind.ARRANGE,
    [
        Operation(
            "rising",
            ("list from small to large", "numbers in rising order"),
            "sorted(a)",
            ("a", "sorted(a, reverse=True)"),
            ("falling",),
            gives_list=True,
        ),
        Operation(
            "falling",
            ("list from large to small", "numbers in falling order"),
            "sorted(a, reverse=True)",
            ("sorted(a)", "a[::-1]"),
            ("rising", "backwards"),
            gives_list=True,
        ),
        Operation(
            "backwards",
            ("list backwards", "numbers from last to first"),
            "a[::-1]",
            ("a", "sorted(a, reverse=True)"),
            ("falling",),
            gives_list=True,
        ),
        Operation(
            "as is",
            ("list as it stands", "numbers in their order"),
            "a",
            ("sorted(a)", "a[1:]"),
            ("rising",),
            gives_list=True,
        ),
        Operation(
            "unique",
            ("different ones from small to large", "rising list without repeats"),
            "sorted(set(a))",
            ("sorted(a)", "sorted(set(a))[::-1]"),
            ("rising",),
            gives_list=True,
        ),
    ],
)
