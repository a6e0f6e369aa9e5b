"""Python's side of the translator: callables, classes, types, metadata, and which code the eval-frame hook skips."""
