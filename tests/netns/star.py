"""A star of network namespaces: one for each rank, a bridge in one more, every cable shaped.

    with Star(4) as star:
        star.shape(200)                 # Mb/s, both directions of every cable
        star.run_all([words, ...])      # one command for each rank, at once

Shaping is tc's token bucket at both ends of a cable: what a host sends and what the bridge sends to
it. A large bucket would let a whole small collective pass unshaped after every pause, so that it
holds BURST_BYTES only, and the sending stack may hand over no packet that is larger than half of
it. See shaped_link.py for what a bucket charges for a packet. Congestion control is Reno's.
"""

import os
import subprocess
import time

from privileges import Refused, permitted

BURST_BYTES = 16384
LARGEST_PACKET = 8 * 1514
PREFIX = "10.213.8."


class Star:
    """Gone at the end, whatever happened."""

    def __init__(self, ranks):
        self.ranks = ranks
        self.hosts = [f"railyard{os.getpid()}h{rank}" for rank in range(ranks)]
        self.middle = f"railyard{os.getpid()}m"
        self.addresses = [f"{PREFIX}{rank + 1}" for rank in range(ranks)]

    def __enter__(self):
        try:
            self.build()
        except Refused:
            self.__exit__()
            raise
        return self

    def build(self):
        permitted("ip", "netns", "add", self.middle)
        permitted("ip", "-n", self.middle, "link", "add", "bridge", "type", "bridge")
        permitted("ip", "-n", self.middle, "link", "set", "bridge", "up")
        for rank, name in enumerate(self.hosts):
            port = f"port{rank}"
            permitted("ip", "netns", "add", name)
            permitted("ip", "link", "add", "veth0", "netns", name, "type", "veth",
                      "peer", "name", port, "netns", self.middle)
            for where, device in ((name, "veth0"), (self.middle, port)):
                permitted("ip", "-n", where, "link", "set", device, "gso_max_size",
                          str(LARGEST_PACKET))
            permitted("ip", "-n", name, "address", "add", f"{self.addresses[rank]}/24",
                      "dev", "veth0")
            permitted("ip", "-n", self.middle, "link", "set", port, "master", "bridge", "up")
            permitted("ip", "-n", name, "link", "set", "veth0", "up")
            permitted("ip", "-n", name, "link", "set", "lo", "up")
            permitted("ip", "netns", "exec", name, "sh", "-c",
                      "echo reno >/proc/sys/net/ipv4/tcp_congestion_control")
        self.wait_for_ports()

    def wait_for_ports(self):
        """A port of a bridge forwards nothing until the bridge has learnt that it is up."""
        for address in self.addresses[1:]:
            for _ in range(50):
                if subprocess.run(self.command(0, ("ping", "-c1", "-W1", address)),
                                  capture_output=True, check=False).returncode == 0:
                    break
                time.sleep(0.1)

    def __exit__(self, *_):
        for name in (*self.hosts, self.middle):
            subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)

    def shape(self, mbit):
        ends = [(name, "veth0") for name in self.hosts]
        ends += [(self.middle, f"port{rank}") for rank in range(self.ranks)]
        for name, device in ends:
            permitted("tc", "-n", name, "qdisc", "replace", "dev", device, "root", "tbf", "rate",
                      f"{mbit}mbit", "burst", str(BURST_BYTES), "limit", "4mb")

    def command(self, rank, words):
        return ["ip", "netns", "exec", self.hosts[rank], *words]

    def run_all(self, commands, timeout=120):
        """Output of every rank's command; an error if one of them fails."""
        running = [subprocess.Popen(self.command(rank, words), stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE, text=True)
                   for rank, words in enumerate(commands)]
        outputs = []
        try:
            for process in running:
                out, errors = process.communicate(timeout=timeout)
                if process.returncode != 0:
                    raise RuntimeError(f"{process.args}: status {process.returncode}: {errors}")
                outputs.append(out)
        finally:
            for process in running:
                process.kill()
        return outputs
