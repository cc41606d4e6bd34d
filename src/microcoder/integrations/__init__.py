"""Integrations: the judge inside the programs in which people train and evaluate. Each file imports only its own.

`shared` has the one judge of a process, which all integrations of that process ask. See docs/integrations/.
"""
