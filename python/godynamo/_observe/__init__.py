"""What godynamo says of its work: logs, the trace, reasons in words, artefacts."""
