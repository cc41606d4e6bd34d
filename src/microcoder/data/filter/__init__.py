"""Filter stage: quality, licence, benchmarks' problems, duplicates; each rejected row has a reason."""
