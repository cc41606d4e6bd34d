"""How hard problems are, and which are kept by it: a model's scores and pass rates. See docs/dataset.md."""
