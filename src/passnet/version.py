"""The version of passnet."""

__version__ = "0.1.0"
