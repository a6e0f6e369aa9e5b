"""Passes captured graphs to backends and checks the results. Implements Python operations in graphs."""
