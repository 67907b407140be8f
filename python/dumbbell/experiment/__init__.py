"""Experiments: what a file says, checked and resolved. Nothing here runs anything."""
