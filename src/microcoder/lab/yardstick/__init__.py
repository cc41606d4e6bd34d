"""A benchmark of code judges: cases with known answers, run on any judge, and a report.

`cases` what is asked (`data/`, and what a seed makes) · `catalogue` the judges that are known by name, and adapters in
files · `inside/` what runs in the throw-away process of a judge, with the standard library alone ·
`session` that process seen from outside, a case put and answered, figures · `report` JSON and Markdown. See
docs/judges.md.
"""
