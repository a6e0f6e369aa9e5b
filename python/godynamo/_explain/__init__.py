"""explain()'s result, as data, text, HTML and pictures, and its counts."""
