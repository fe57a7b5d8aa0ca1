#!/usr/bin/env python3
"""One rank of a ring all-reduce's traffic over plain sockets: what the links give without Gloo.

    plain_ring.py RANK PORT BYTES ROUNDS ADDRESS...

Every rank sends BYTES / ranks to the next and receives as much from the one before, 2 (ranks - 1)
times, each time after the last has arrived; nothing is reduced. Rank 0 prints the median of ROUNDS,
in microseconds. Before a round the ranks pause, as the Gloo probe's do.
"""

import socket
import statistics
import sys
import threading
import time

PAUSE = 0.003


def connected(address, port):
    deadline = time.monotonic() + 20
    while True:
        try:
            return socket.create_connection((address, port), timeout=20)
        except ConnectionRefusedError:  # it does not listen yet
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def receive(peer, buffer):
    view = memoryview(buffer)
    while view:
        got = peer.recv_into(view)
        if got == 0:
            raise ConnectionError("the rank before has gone")
        view = view[got:]


def step(following, before, chunk, buffer):
    sender = threading.Thread(target=following.sendall, args=(chunk,))
    sender.start()
    receive(before, buffer)
    sender.join()


def main():
    rank, port, size, rounds = map(int, sys.argv[1:5])
    addresses = sys.argv[5:]
    with socket.create_server((addresses[rank], port)) as server:
        following = connected(addresses[(rank + 1) % len(addresses)], port)
        before, _ = server.accept()
    before.settimeout(20)
    for peer in (following, before):
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    chunk, times = bytes(size // len(addresses)), []
    buffer = bytearray(len(chunk))
    for _ in range(rounds + 1):  # the first is a warm-up
        time.sleep(PAUSE)
        for _ in addresses:  # all are here
            step(following, before, b"x", bytearray(1))
        start = time.perf_counter()
        for _ in range(2 * (len(addresses) - 1)):
            step(following, before, chunk, buffer)
        times.append(time.perf_counter() - start)
    if rank == 0:
        print(statistics.median(times[1:]) * 1e6)


if __name__ == "__main__":
    main()
