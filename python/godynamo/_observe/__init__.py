"""Reports on godynamo's work: logs, log artefacts, the trace, and reasons for recompiles in words."""
