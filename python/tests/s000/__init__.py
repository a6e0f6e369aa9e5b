"""Section S000 of docs/conformance.md: Python calls as nodes of the graph. One file a topic; every test names its rows."""
