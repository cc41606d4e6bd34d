"""A benchmark of code judges: cases with known answers, run on any judge, and a report.

`cases`: stored (`data/`) and generated from a seed · `inside/`: code that runs in the disposable process of a judge,
with only the standard library · `audits`: parses judges, starts their processes, runs the cases, writes the results.
See docs/judges.md.
"""
