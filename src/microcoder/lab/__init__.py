"""The lab: studies of the paper's claims, and a benchmark of judges.

`studies` plans, judges and reports experiments; `yardstick` measures any judge by programs whose
verdict is known. Both read run directories and records only, so a run of any engine, or of
somebody else, is the same to them. Read `studies/design.py` first.
"""
