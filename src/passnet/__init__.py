"""passnet: find the graphs where a tensor compiler loses, write passes for them, prove their worth.

The package follows the way of the data: `graph`, `extract`, `mine`, `dataset`, `passes`, `judge`,
`score`, `bench`, `report`; each folder imports only from those before it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from passnet.extract.capture import capture

__all__ = ["__version__", "capture"]


def __getattr__(name: str) -> Any:
    """Import `passnet.capture` on first use, so that `import passnet` does not import torch."""
    if name == "capture":
        from passnet.extract.capture import capture

        return capture
    raise AttributeError(f"module 'passnet' has no attribute {name!r}")
