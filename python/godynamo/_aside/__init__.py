"""Compiles captured graphs in another process, while the program runs them as captured."""
