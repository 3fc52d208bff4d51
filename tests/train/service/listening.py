"""A listener of the service in this process, and plain sockets to it."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from passnet_service.connections import Application, Connections
from passnet_service.settings import ServiceLimits


@asynccontextmanager
async def listening(
    application: Application, token: str, limits: ServiceLimits
) -> AsyncIterator[tuple[Connections, int]]:
    """Connections accepted while the block runs, and their port."""
    connections = Connections(application, token, limits)
    with socket.create_server(("127.0.0.1", 0), backlog=512) as listener:
        task = asyncio.create_task(connections.accept(listener))
        try:
            yield connections, listener.getsockname()[1]
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
