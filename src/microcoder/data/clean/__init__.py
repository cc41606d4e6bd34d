"""Process stage: cleans statements into one layout and flags what is missing; only English ones are kept."""
