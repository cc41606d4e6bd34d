"""Judging one program: workers and sandboxes, limits and timing, which runs count, the reference judge."""
