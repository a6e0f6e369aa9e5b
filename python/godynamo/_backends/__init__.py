"""Hands captured graphs to backends and checks the results; Python operations in graphs."""
