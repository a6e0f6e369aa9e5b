"""Functions called by transformed code, guards, the Go library and the C core."""
