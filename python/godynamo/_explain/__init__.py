"""Implements explain(): its counts, and its result as data, text, HTML and pictures."""
