"""Nodes as virtual machines under QEMU, in which the documents really run."""
