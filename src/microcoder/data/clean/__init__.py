"""The process stage of a build: cleans statements into one layout, and flags what is missing.

Start with `stage`, whose `process` takes a candidate through all steps; only statements in English
stay. `cleaning` removes noise (`pages` reads HTML, `tex` TeX, `markdown` tells prose from code),
`sections` lays a statement out by its `headings`, `normal_tests` gives tests one form, `samples`
compares them with the statement's examples, `powers` restores lost superscripts, `languages`
identifies the language, `flags` looks for obstacles. `bounds` reads ranges and numbers.
"""
