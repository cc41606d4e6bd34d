"""A build: one config, one command, from raw sources to a finished corpus."""

from microcoder.data.build.steps import BuildConfig

__all__ = ["BuildConfig"]
