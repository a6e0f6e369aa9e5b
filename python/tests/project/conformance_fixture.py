"""A small table for the tests of the conformance script."""

import project_support  # noqa: F401  (the path)
import rows as table

ROWS = table.parse_table("| S000-01 | a |\n| S002-01 | b |\n| S002-02 | c |\n| S002-03 | d |\n")
