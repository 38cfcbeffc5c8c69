"""Bugs planted in copies of the product one at a time, to see whether the simulation notices each."""
