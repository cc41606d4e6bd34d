"""The CPU as a device of verl, and transformers in vLLM's place: a means of tests;
`hooks.py` is what verl loads.
"""
