"""A benchmark of code judges: cases with known answers, run on any judge, and a report.

`cases` what is asked (`data/`, and what a seed makes) · `inside/` what runs in the throw-away process of a judge, with
the standard library alone · `session` which judges, that process seen from outside, a case put and answered ·
`report` JSON and Markdown. See docs/judges.md.
"""
