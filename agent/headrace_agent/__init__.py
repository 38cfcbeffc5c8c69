"""The agent inside a VM: configures the machine, moves data, supervises the job and reports."""

VERSION = "0.1.0"
