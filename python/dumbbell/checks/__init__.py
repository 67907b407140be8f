"""Checks of the engine: conformance to documents, and comparison with real kernels."""
