"""fairpg_lite: fairness of exposure in learning to rank."""

from fairpg_lite._version import __version__

__all__ = ["__version__"]
