#!/usr/bin/env python3
"""What a generated InfiniBand fabric and opensm's tables say, for comparison with our importers.

ib_walk.py graph NET            cables of an ibsim net file: "desc port desc port" a line, sorted
ib_walk.py paths IBNET LFTS N   the ports on the way from every N-th host to all, by walking dump_fts:
                                "from to switch:port switch:port ..." a line, sorted
ib_walk.py balance IBNET LFTS   "leaf spine 7 28": a line for every port between switches that these
                                ways use, with the hosts and the pairs of hosts beyond it
"""
import re
import sys

NODE = re.compile(r'(Switch|H?[Cc]a)\s+\d+ "(\S+)"\s+# "([^"]*)"(.*)')
PORT = re.compile(r'\[(\d+)\](?:\([0-9a-f]+\))?\s+"(\S+)"\[(\d+)\](?:\([0-9a-f]+\))?(.*)')
TABLE = re.compile(r"Unicast lids .* guid 0x([0-9a-f]+) ")
ENTRY = re.compile(r"0x([0-9a-f]+) (\d+) ")


def read_net(path):
    """name -> description, (name, port) -> (name, port), name -> LID of a Ca."""
    names, cables, lids, current = {}, {}, {}, None
    for line in open(path):
        if node := NODE.match(line):
            current = node[2]
            names[current] = node[3]
        elif port := PORT.match(line):
            cables[current, int(port[1])] = (port[2], int(port[3]))
            lid = re.search(r"# lid (\d+) lmc", port[4])
            if lid and current.startswith("H-"):
                lids[current] = int(lid[1])
    return names, cables, lids


def read_tables(path):
    tables, current = {}, None
    for line in open(path):
        if start := TABLE.match(line):
            current = tables.setdefault("S-" + start[1], {})
        elif entry := ENTRY.match(line):
            current[int(entry[1], 16)] = int(entry[2])
    return tables


def graph(net):
    names, cables, _ = read_net(net)
    return [f"{names[a]} {p} {names[b]} {q}" for (a, p), (b, q) in cables.items()]


def paths(net, lfts, step):
    names, cables, lids = read_net(net)
    tables = read_tables(lfts)
    for source in list(lids)[:: int(step)]:
        for target, lid in lids.items():
            if source == target:
                continue
            at, _ = cables[source, 1]
            way = []
            while at != target:
                port = tables[at][lid]
                way.append(f"{names[at]}:{port}")
                at, _ = cables[at, port]
                assert len(way) < 32, "a circle"
            yield f"{names[source].split()[0]} {names[target].split()[0]} {' '.join(way)}"


def balance(net, lfts):
    names, cables, lids = read_net(net)
    tables = read_tables(lfts)
    loads = {}
    for source in lids:
        for target, lid in lids.items():
            at, _ = cables[source, 1]
            while source != target and at != target:
                port = tables[at][lid]
                peer, _ = cables[at, port]
                if peer in tables:
                    loads.setdefault((at, port, peer), []).append(target)
                at = peer
    for (at, _, peer), targets in loads.items():
        kinds = [re.match("[a-z]+", names[node])[0] for node in (at, peer)]
        yield f"{kinds[0]} {kinds[1]} {len(set(targets))} {len(targets)}"


if __name__ == "__main__":
    lines = {"graph": graph, "paths": paths, "balance": balance}[sys.argv[1]](*sys.argv[2:])
    print("\n".join(sorted(lines)))
