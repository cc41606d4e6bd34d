"""Operations on a word: edits and traits."""

from __future__ import annotations

from microcoder.micro.operations import Kind, Operation, make_table

EDITS = make_table(
    Kind.EDIT,
    [
        Operation("mirror", ("turn it around", "write it backwards"), "s[::-1]", ("s[1:]", "s[:-1]"), ("behead",)),
        Operation(
            "upper",
            ("put it in capitals", "make all letters upper case"),
            "s.upper()",
            ("s.title()", "s.lower()"),
            ("drop a",),
        ),
        Operation(
            "drop a",
            ("strike every letter a", "leave out each a"),
            's.replace("a", "")',
            ('s.replace("a", "A")', 's.strip("a")'),
            ("consonants",),
        ),
        Operation(
            "consonants",
            ("strike the vowels", "keep the consonants"),
            '"".join(c for c in s if c not in "aeiou")',
            ('"".join(c for c in s if c in "aeiou")', 's.replace("aeiou", "")'),
            ("vowels",),
        ),
        Operation(
            "vowels",
            ("strike the consonants", "keep the vowels"),
            '"".join(c for c in s if c in "aeiou")',
            ('"".join(c for c in s if c not in "aeiou")', 's.strip("aeiou")'),
            ("consonants",),
        ),
        Operation(
            "alphabet",
            ("put its letters in alphabetical order", "sort its letters"),
            '"".join(sorted(s))',
            ("str(sorted(s))", '"".join(sorted(set(s)))'),
            ("mirror",),
        ),
        Operation(
            "twice", ("write it twice in a row", "append it to itself"), "s * 2", ("s + s[::-1]", "s"), ("mirror",)
        ),
        Operation(
            "behead",
            ("cut the first letter", "take off its first letter"),
            "s[1:]",
            ("s[:-1]", "s[1:-1]"),
            ("curtail",),
        ),
        Operation(
            "curtail", ("cut the last letter", "take off its last letter"), "s[:-1]", ("s[1:]", "s[-1:]"), ("behead",)
        ),
        Operation(
            "every {k}",
            ("keep each {k}-th letter, the first included", "take the first and each {k}-th after"),
            "s[::{k}]",
            ("s[{k}:]", "s[:{k}]"),
            ("mirror",),
            (2, 3),
        ),
    ],
)

TRAITS = make_table(
    Kind.TRAIT,
    [
        Operation("length", ("its length", "how many letters it has"), "len(s)", ("len(set(s))", "s"), ("letters",)),
        Operation(
            "letters",
            ("how many different letters it has", "its number of distinct letters"),
            "len(set(s))",
            ("len(s)", "sorted(set(s))"),
            ("length",),
        ),
        Operation(
            "count e",
            ("how often it has an e", "its count of e"),
            's.count("e")',
            ('s.find("e")', "len(s)"),
            ("length",),
        ),
        Operation(
            "palindrome",
            ("YES if it is a palindrome, else NO", "YES or NO: is it the same backwards"),
            '"YES" if s == s[::-1] else "NO"',
            ('"NO" if s == s[::-1] else "YES"', '"YES" if s == s[1:] else "NO"'),
            ("length",),
        ),
        Operation(
            "top letter",
            ("its letter latest in the alphabet", "its greatest letter"),
            'max(s, default="")',
            ('min(s, default="")', "s[-1:]"),
            ("low letter",),
        ),
        Operation(
            "low letter",
            ("its letter earliest in the alphabet", "its least letter"),
            'min(s, default="")',
            ('max(s, default="")', "s[:1]"),
            ("top letter",),
        ),
    ],
)
