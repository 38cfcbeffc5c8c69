"""What headrace does: one module per state, and one per event that no state calls."""
