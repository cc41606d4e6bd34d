"""A benchmark of code judges: cases with known answers, run on any judge, and a report.

`cases` has the cases: stored ones (`data/`), and others generated from a seed. `named_judges`
parses the names of judges. `lanes` starts a judge's process and asks it. `contained/` is the code
in that process, which is disposable and has only the standard library. `audits` runs the cases on a
judge, and `results` writes what came out as JSON and as a page.

Read `cases` first, then `audits`. See docs/judges.md.
"""
