"""`python -m microcoder`."""

from microcoder.cli import main

main()
