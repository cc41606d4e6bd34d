"""Studies and reports on runs, from run directories: they read files, never live objects.

A study is a file (`design`) with levels to train at, measurements, and claims. Its runs and
measurements are planned and recorded (`work`) and done in processes (`workers`). What they
recorded is read as curves (`features`), compared between levels (`contrasts`), estimated with an
interval (`effects`), and judged (`claims`). Pages show the results (`pages`, `sentences`,
`figures`).

The report of a single run, which the viewer shows, is in `report`; its intervals over problems
are in `accuracy`. Read `design` first, then `claims`.
"""
