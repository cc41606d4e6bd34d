"""Learns what a problem's inputs look like from known ones, and makes further inputs of the same kind.

texts or arguments -> layouts -> values -> model (shapes, constraints) -> drawn and mutated values -> texts again
"""
