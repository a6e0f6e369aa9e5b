"""godynamo's reports on its work: logs, the trace, reasons in words, artefacts."""
