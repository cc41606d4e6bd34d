"""Engines translate, never decide."""
