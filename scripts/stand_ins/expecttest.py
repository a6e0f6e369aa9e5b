"""What importing torch.testing._internal needs of the package expecttest, where it is missing (scripts/gpu.py)."""

import unittest

ACCEPT = False


class TestCase(unittest.TestCase):
    """The base class of torch's own test cases, which are not run here."""
