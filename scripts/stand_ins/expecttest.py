"""What importing torch.testing._internal needs of the package expecttest, where it is missing (scripts/gpu.py)."""

import unittest

ACCEPT = False


class TestCase(unittest.TestCase):
    """An empty base class: torch's test cases are defined, but never run."""
