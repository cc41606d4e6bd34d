"""Does each extra fit beside what people have? Asked of the index: `make test-resolve`."""
