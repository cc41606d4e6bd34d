"""A benchmark of code judges: cases with known answers, run on any judge, and a report.

`cases` what is asked (`data/`), `fresh` the part that a seed makes, `contests` submissions with known verdicts ·
`catalogue` the judges that are known by name · `inside/` what runs in the throw-away process of a judge, with the
standard library alone, `lane` that process seen from outside · `questions` one case, put and answered · `scoring`
answers -> figures, `report` figures -> JSON and Markdown · `session` the whole, top to bottom. See docs/judges.md.
"""
