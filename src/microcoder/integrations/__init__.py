"""Integrations of the judge into other frameworks for training and evaluation; each file imports only its own.

`shared` has the one judge of a process, which all integrations of that process use. See docs/integrations.md.
"""
