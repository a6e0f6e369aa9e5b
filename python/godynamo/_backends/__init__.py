"""The way of a captured graph to a backend and back; Python operations in graphs."""
