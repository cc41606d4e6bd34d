"""Compares problems by what their programs compute, whatever they are told like.

    Candidate -> forms -> pairs with benchmark problems -> runs -> agreements -> Hit

Read `comparison.py` first: `index_behaviour` takes the problems of benchmarks, and `find_behaviour`
says which of them a candidate equals. `forms.py` reads a problem as a function of values.

`running.py` runs many programs on many small inputs, by means of `sandboxed.py`, which runs in the
sandbox. `outputs.py` turns outputs into tokens and says how far those of two programs agree.
"""
