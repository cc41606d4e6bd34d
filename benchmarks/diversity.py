"""How long the diversity of a step takes: 64 problems x 8 responses of 8,192 tokens, on one core.

    python benchmarks/diversity.py

Token ids follow Zipf's law over a vocabulary of 151,643, as text does, held as the tuples that rollouts hold.
"""

from __future__ import annotations

import time
from statistics import median

import numpy as np

from microcoder.train.algorithm.diversity import measure_diversity

NUM_PROBLEMS, NUM_SAMPLES, NUM_TOKENS, VOCABULARY = 64, 8, 8192, 151_643
NUM_REPEATS = 7


def sample_step() -> list[list[tuple[int, ...]]]:
    generator = np.random.default_rng(0)
    ids = generator.permutation(VOCABULARY)
    drawn = np.minimum(generator.zipf(1.3, (NUM_PROBLEMS, NUM_SAMPLES, NUM_TOKENS)), VOCABULARY) - 1
    return [[tuple(response) for response in group] for group in ids[drawn].tolist()]


def main() -> None:
    groups_P = sample_step()
    seconds = []
    for _ in range(NUM_REPEATS):
        start = time.process_time()
        diversity = measure_diversity(groups_P)
        seconds.append(time.process_time() - start)
    print(
        f"{NUM_PROBLEMS} x {NUM_SAMPLES} responses of {NUM_TOKENS} tokens: diversity {diversity:.3f} in "
        f"{median(seconds):.3f} s of one core (median of {NUM_REPEATS}, best {min(seconds):.3f})"
    )


if __name__ == "__main__":
    main()
