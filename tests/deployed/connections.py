"""A TCP proxy whose connections a test can break, as a network forgets those of a process that was frozen."""

from __future__ import annotations

import contextlib
import selectors
import socket
import struct
import threading
from collections.abc import Iterator
from urllib.parse import urlsplit

_RESET_ON_CLOSE = struct.pack("ii", 1, 0)


class Proxy:
    """Passes bytes between its own port and one engine.

    Attributes:
        opened: How many connections clients have made so far.
    """

    def __init__(self, upstream_url: str) -> None:
        """Listen on a free port.

        Args:
            upstream_url: Where the engine answers.
        """
        url = urlsplit(upstream_url)
        self._upstream = (url.hostname or "", url.port or 0)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._selector = selectors.DefaultSelector()
        self._peers: dict[socket.socket, socket.socket] = {}
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self.opened = 0

    @property
    def url(self) -> str:
        """Where a client reaches the proxy."""
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    @contextlib.contextmanager
    def serving(self) -> Iterator[Proxy]:
        """Pass bytes for the duration of the context."""
        self._selector.register(self._listener, selectors.EVENT_READ)
        thread = threading.Thread(target=self._serve)
        thread.start()
        try:
            yield self
        finally:
            self._closing.set()
            thread.join()
            self.reset_connections()
            self._listener.close()
            self._selector.close()

    def reset_connections(self) -> int:
        """Break every connection; whoever uses one next is told that it is gone.

        Returns:
            How many clients lost theirs.
        """
        with self._lock:
            # What its client has closed already is not lost, also where nobody has looked since.
            for key, _ in self._selector.select(timeout=0):
                if isinstance(key.fileobj, socket.socket) and key.fileobj in self._peers:
                    self._pass_on(key.fileobj)
            lost = len(self._peers) // 2
            while self._peers:
                self._drop(next(iter(self._peers)))
        return lost

    def _serve(self) -> None:
        while not self._closing.is_set():
            for key, _ in self._selector.select(timeout=0.05):
                with self._lock:
                    if key.fileobj is self._listener:
                        self._accept()
                    elif isinstance(key.fileobj, socket.socket) and key.fileobj in self._peers:
                        self._pass_on(key.fileobj)

    def _accept(self) -> None:
        client, _ = self._listener.accept()
        upstream = socket.create_connection(self._upstream)
        for end in (client, upstream):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._peers |= {client: upstream, upstream: client}
        self._selector.register(client, selectors.EVENT_READ)
        self._selector.register(upstream, selectors.EVENT_READ)
        self.opened += 1

    def _pass_on(self, source: socket.socket) -> None:
        try:
            data = source.recv(65_536)
            if data:
                self._peers[source].sendall(data)
                return
        except OSError:
            # One of the two has gone, so the connection has.
            data = b""
        self._drop(source)

    def _drop(self, connection: socket.socket) -> None:
        for end in (connection, self._peers.pop(connection, None)):
            if end is not None:
                self._peers.pop(end, None)
                self._selector.unregister(end)
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
                end.close()
