"""What differs between the versions of CPython that tests run on. Tests assert the fact of the running version."""

import sys

COMPREHENSIONS_ARE_INLINED = sys.version_info >= (3, 12)
"""PEP 709: a comprehension of lists, sets or dicts has no frame of its own."""

COLLECTS_AT_ALLOCATION = sys.version_info < (3, 12)
"""The collector runs where an object is allocated. Since 3.12 it runs where the eval loop looks at its requests."""
