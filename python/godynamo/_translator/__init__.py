"""Python's side of the translator: callables, classes, types, metadata, and which code is left alone."""
