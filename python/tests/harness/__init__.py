"""What the tests of more than one folder share: comparisons with CPython, tables of cases, and the parts of the fuzzers."""
