"""Scripts for the disposable process of a judge under test.

Of this package they import only the judge itself, so that any interpreter can run them. Read
`worker` first; `judges` has the judges that it can ask.
"""
