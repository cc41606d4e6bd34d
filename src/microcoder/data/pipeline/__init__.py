"""The pipeline's engine: shards, steps, resume. It knows nothing of what a step does."""
