"""The result of explain() as data, text, HTML and pictures, and its counts."""
