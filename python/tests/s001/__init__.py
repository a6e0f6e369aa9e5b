"""Section S001 of docs/conformance.md: `__torch_function__` and dispatch. One file a topic; every test names its rows."""
