"""One program through its tests: workers and sandboxes, limits and time, which runs count, the specification."""
