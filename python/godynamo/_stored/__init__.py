"""What translations on disk need of Python: descriptions of objects, fingerprints, and the key of a translation."""
