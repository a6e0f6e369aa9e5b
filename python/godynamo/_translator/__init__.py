"""What the translator asks while it translates a frame: of callables, classes, types, metadata, and which code is left alone."""
