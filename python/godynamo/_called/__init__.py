"""Functions that transformed code, guards, the Go library and the C core call."""
