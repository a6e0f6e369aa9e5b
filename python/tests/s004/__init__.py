"""Section S002 of docs/conformance.md: the core. One file a topic; every test names its rows."""
