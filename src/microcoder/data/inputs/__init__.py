"""Learns what a problem's inputs look like from known ones, and makes further ones of that kind.

    texts or arguments -> layouts -> values -> model -> mutated values -> texts again

`layouts.py` turns inputs into values and back: `read_texts` and `read_calls` give the possible
readings, `Layout.render` writes values as an input. Read this file first; the two below work on
values alone. `finding.py` is its inner part, which infers the lines of a layout.

`models.py` learns what all known values have in common: `learn` gives an `InputModel`, whose `fits`
decides about a new input. `mutating.py` makes inputs that fit: `mutate` by one named mutation,
`vary` by all of those that make no program slow.

Where validators decide what is an input, bounds of known ones need not be kept: `tiny.py` lists the
smallest values, `shapes.py` arranges the largest. `texts.py` changes texts of any layout.
"""
