"""The formats that a report is written in, one module each."""
