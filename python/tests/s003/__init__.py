"""Section S003 of docs/conformance.md: torch.nn. One file a topic; every test names its rows."""
