"""A set of your own that is a table: which column holds what.

Nothing else is needed where no column has quirks.

corpus:    [[sources]] with format = "format.py:lessons" and path = "lessons.jsonl"
anywhere:  read_problem(row, format="format.py:lessons")
"""

from microcoder.data.formats.format import Columns

lessons = Columns(
    statement="task.text",
    tests=("cases", "task.cases"),
    title="name",
    difficulty="level",
    solutions="answers",
    time_limit="limits.cpu",
)
