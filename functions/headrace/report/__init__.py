"""What a person reads: plan table, live view, receipt."""
