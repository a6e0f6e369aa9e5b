"""Shared by tests of several folders: comparisons with CPython, tables of cases, the common parts of the fuzzers."""
