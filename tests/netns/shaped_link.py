#!/usr/bin/env python3
"""probe_tcp must find what a link was configured to.

    shaped_link.py PROBE_TCP ECHO_LATENCY

Two network namespaces are joined by a veth pair whose ends are shaped with tc's token bucket.

Rate. The bucket pays for a packet what the qdisc sees of it: the IP packet and the 14 bytes of
Ethernet header; no preamble, frame check sequence or gap. A full TCP segment on an MTU of 1500
with time stamps carries 1500 - 20 (IP) - 20 (TCP) - 12 (time stamps) = 1448 bytes, so that

    goodput = rate * 1448 / (1500 + 14) = 0.9564 rate.

Offloads do not matter: the sender's stack hands the qdisc large packets whatever ethtool says, and
the kernel charges one that stands for n segments n headers (qdisc_pkt_len_init). The bucket must
hold two of them (64 KB each), or tbf cuts them up and cannot keep the rate.
What the bucket holds when a stream begins passes unshaped; probe_tcp's warm-up discards that.
Congestion control is Reno's, which every kernel has and which fills a queue that drops nothing; one
that paces by its own model of the path, as BBR does, measures that model.
A machine busy with other work can keep a link from being filled but never from being limited, so
a rate that comes out low is measured again, twice at most; one that comes out high never is.

Latency. One byte half way there and back, against a ping-pong written apart from the probe. Both
run with their two ends on one processor, since a trip costs four times as much when the other end
has to be woken elsewhere. Rounds are made in turn and their medians compared: a round may meet other
work, or a processor that is faster for once.

Exit status: 0 passed, 1 failed, 77 skipped (namespaces or shaping are not permitted here).
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile

from privileges import Refused, go_first, permitted

RATES_MBIT = (100, 200, 500, 1000)
ADDRESSES = ("10.213.7.1", "10.213.7.2")
SEGMENT, FRAME = 1500 - 20 - 20 - 12, 1500 + 14
RATE_TOLERANCE, MEAN_TOLERANCE, LATENCY_TOLERANCE = 0.05, 0.025, 0.25
TRIPS, ATTEMPTS, ROUNDS = 3000, 3, 8


class Link:
    """Two namespaces and the pair between them; gone at the end, whatever happened."""

    def __init__(self):
        self.names = [f"railyard{os.getpid()}{end}" for end in "ab"]

    def __enter__(self):
        try:
            for name in self.names:
                permitted("ip", "netns", "add", name)
            permitted("ip", "link", "add", "veth0", "netns", self.names[0], "type", "veth",
                      "peer", "name", "veth0", "netns", self.names[1])
            for name, address in zip(self.names, ADDRESSES):
                permitted("ip", "-n", name, "address", "add", f"{address}/24", "dev", "veth0")
                permitted("ip", "-n", name, "link", "set", "veth0", "up")
                permitted("ip", "netns", "exec", name, "sh", "-c",
                          "echo reno >/proc/sys/net/ipv4/tcp_congestion_control")
        except Refused:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for name in self.names:
            subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)

    def shape(self, mbit):
        # At least two milliseconds' worth, so that a late timer costs nothing, but less than the
        # receiver's backlog holds; a queue that holds what TCP keeps in flight, without drops.
        burst = max(128, mbit // 4)
        for name in self.names:
            permitted("tc", "-n", name, "qdisc", "replace", "dev", "veth0", "root", "tbf", "rate",
                      f"{mbit}mbit", "burst", f"{burst}kb", "limit", "4mb")

    def command(self, end, words):
        return ["ip", "netns", "exec", self.names[end], *words]

    def start(self, end, words):
        """A server in one namespace, once it has said its first line."""
        process = subprocess.Popen(self.command(end, words), stdout=subprocess.PIPE, text=True)
        process.stdout.readline()
        return process

    def run(self, end, words):
        return subprocess.run(self.command(end, words), check=True, capture_output=True, text=True,
                              timeout=50).stdout


def served(link, server, ask):
    process = link.start(1, server)
    try:
        return link.run(0, ask)
    finally:
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()


def probe(link, program, directory, seconds):
    """The fitted bandwidth of one stream, and the time of one byte."""
    path = os.path.join(directory, "tcp.json")
    served(link, (program, "--listen", "--once"),
           (program, "--connect", ADDRESSES[1], "--seconds", str(seconds), "--pingpong", "1",
            "--sizes", "16K,64K,256K", "--sockets", "1", "--threads", "1", "--json", path))
    with open(path, encoding="utf-8") as file:
        report = json.load(file)
    fits = [fit["bytes_per_second"] for fit in report["fits"] if fit["kind"] == "tcp.stream"]
    trip, = [row for row in report["rows"] if row["kind"] == "tcp.pingpong"]
    return fits[0] if fits else 0, trip["time_us"]["median"]


def reference_latency(link, program):
    return float(served(link, (program, "serve", "29900"),
                        (program, "ask", ADDRESSES[1], "29900", str(TRIPS))))


def bandwidth_of(link, program, directory, goodput):
    """Of the first attempt that is not too low."""
    for _ in range(ATTEMPTS):
        bandwidth, _ = probe(link, program, directory, 0.6)
        if bandwidth >= goodput * (1 - RATE_TOLERANCE):
            break
        print(f"  too low, {bandwidth:.4g} B/s", flush=True)
    return bandwidth


def check(name, found, expected, tolerance):
    error = found / expected - 1
    good = abs(error) <= tolerance
    print(f"{name}: {found:.4g}, expected {expected:.4g}: {error:+.1%}, at most {tolerance:.1%}"
          f"{'' if good else '  FAILED'}", flush=True)
    return good


def check_rates(link, probe_tcp, directory):
    good, ratios = True, []
    for mbit in RATES_MBIT:
        link.shape(mbit)
        goodput = mbit * 1e6 / 8 * SEGMENT / FRAME
        found = bandwidth_of(link, probe_tcp, directory, goodput)
        ratios.append(found / goodput)
        good &= check(f"{mbit} Mb/s, goodput B/s", found, goodput, RATE_TOLERANCE)
    # Tells the goodput from the rate itself, which lies 4.6 % above it.
    return good & check("mean of found : expected", sum(ratios) / len(ratios), 1, MEAN_TOLERANCE)


def check_latency(link, probe_tcp, echo_latency, directory):
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    references, latencies = [], []
    for _ in range(ROUNDS):
        references.append(reference_latency(link, echo_latency))
        latencies.append(probe(link, probe_tcp, directory, 0.1)[1])
    print("  us, reference and probe in turn:", *zip(references, latencies))
    return check("one byte, us", statistics.median(latencies), statistics.median(references),
                 LATENCY_TOLERANCE)


def main():
    probe_tcp, echo_latency = sys.argv[1:]
    go_first()
    with Link() as link, tempfile.TemporaryDirectory() as directory:
        good = check_rates(link, probe_tcp, directory)
        good &= check_latency(link, probe_tcp, echo_latency, directory)
    return 0 if good else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Refused as why:
        print(f"skipped: no shaped link between network namespaces here: {why}")
        sys.exit(77)
