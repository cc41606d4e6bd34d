"""Compares problems by what their programs compute, whatever they are told like.

    Candidate -> forms -> pairs with benchmark problems -> runs -> agreements -> Hit

Read `comparison.py` first: `find_behaviour` says which benchmark problems some candidates equal.
`pairs.py` says which are put beside each other. `forms.py` reads a problem as a function of values,
by means of `blocks.py` for stdin and of `asserted.py` for tests that are programs. `views.py` gives
these values other shapes. `trials.py` weighs what speaks for a pair, and `keeping.py` writes what a
comparison came to.

`running.py` runs many programs on many small inputs, by means of `sandboxed.py`, which runs in the
sandbox. `outputs.py` turns outputs into tokens and says how far those of two programs agree.
"""
