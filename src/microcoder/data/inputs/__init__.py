"""What inputs of a problem look like, learnt from known ones, and further inputs of the same kind.

texts or arguments -> layouts -> values -> model (shapes, constraints) -> drawn and mutated values -> texts again
"""
