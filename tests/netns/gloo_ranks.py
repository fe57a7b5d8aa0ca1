#!/usr/bin/env python3
"""Railyard's Gloo against Gloo: fitted on two ranks, predicted for four.

    gloo_ranks.py PROBE_GLOO RAILYARD [--full] [--rates 200,500] [--json FILE]

Two, then four network namespaces on a star of shaped links (star.py) run gloo::allreduce, the ring
that PyTorch calls, through probe_gloo. `railyard calibrate fit` finds the link's efficiency and the
costs of a message from the two-rank times; with these `railyard run` predicts four ranks, and must
be right within 15 %. The default is a part of the table that a test has time for; --full adds
64 MiB, and 1 Gb/s, which is shown and not asserted: there the processors decide, which all ranks
of this rig share.

Bucket. Before every call the ranks pause, so that the shapers' buckets are full: BURST_BYTES of
every call then pass at once, and its time is BURST_BYTES / rate less than on a link. That much is
added to what was measured. Times are medians of at least five calls, with the least and the most.

Retries. Other work on the machine can only make a call longer. Two ranks are measured twice, and
of each size the lower median counts; sizes of four ranks that come out too long are measured again,
twice at most. A time that is too short fails at once.

What is asserted. --full: the median of four ranks, within 15 % of what two ranks' medians give. The
default, which runs beside whatever else the machine does: fitted to the shortest calls of two ranks,
the prediction must be within 15 % of what lies between the shortest call and the median of four; rows
in which four ranks ask for all cores of the machine are shown only, and so are rows that stay too
long where plain sockets (plain_ring.py), sending what the ring sends, do not get 90 % of the links
either: then the machine is what is slow, not the prediction. They are
counted at the end; where no row is left to judge the test is skipped.

Exit status: 0 passed, 1 failed, 77 skipped (namespaces or shaping are not permitted here, or the
machine is too busy).
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

from privileges import Refused, go_first
from shaped_link import FRAME, SEGMENT
from star import BURST_BYTES, Star

TOLERANCE, ATTEMPTS = 0.15, 3
PLAIN_BYTES, PLAIN_ROUNDS, PLAIN_SHARE = 4 << 20, 5, 0.9
PORT, PLAIN_PORT, PAUSE = "29777", "29778", "0.003"
ALGORITHM = "AllReduce/segmented-ring"
HERE = os.path.dirname(os.path.abspath(__file__))
SCENARIO = os.path.join(HERE, "gloo.yaml")
KIB = 1024


def probe_command(options, star, rank, sizes, path):
    words = [options.probe, "--rank", str(rank), "--world", str(star.ranks),
             "--address", star.addresses[0], "--port", PORT, "--own-address",
             star.addresses[rank], "--only", ALGORITHM, "--pause", PAUSE, "--seconds", "0.25",
             "--sizes", ",".join(str(size) for size in sizes)]
    return words + (["--json", path] if rank == 0 else [])


def measure(options, star, sizes, mbit):
    """{bytes: {median, min, max, count, busy}}, microseconds, without the buckets' gift."""
    with tempfile.NamedTemporaryFile() as report:
        star.run_all([probe_command(options, star, rank, sizes, report.name)
                      for rank in range(star.ranks)], timeout=300)
        rows = json.load(open(report.name, encoding="utf-8"))["rows"]
    gift = BURST_BYTES * 8 / mbit
    found = {}
    for row in rows:
        if row["kind"] == "gloo.operation":
            times = row["time_us"]
            found[row["bytes"]] = {"count": times["count"]}
            for key in ("median", "min", "max"):
                found[row["bytes"]][key] = times[key] + gift
    for row in rows:
        if row["kind"] == "gloo.processor":
            found[int(row["labels"]["bytes"])]["busy"] = row["value"]
    return found


def lower(first, second):
    """Of each size the row with the lower median, with the shortest call of both."""
    rows = {}
    for size, row in first.items():
        pair = (row, second.get(size, row))
        rows[size] = dict(min(pair, key=lambda each: each["median"]),
                          min=min(each["min"] for each in pair))
    return rows


def nccl_tests_log(times, key):
    """What `calibrate fit` reads: nccl-tests' table, times out of place."""
    lines = ["# out-of-place in-place",
             "#       size         count      type   redop    root     time   algbw   busbw "
             "#wrong     time   algbw   busbw #wrong",
             "#        (B)    (elements)                               (us)  (GB/s)  (GB/s) "
             "            (us)  (GB/s)  (GB/s)       "]
    for size, row in sorted(times.items()):
        rate = size / row[key] / 1e3
        lines.append(f"{size:12d} {size // 4:13d}     float     sum      -1 {row[key]:8.1f} "
                     f"{rate:7.4f} {rate:7.4f}    N/A {row[key]:8.1f} {rate:7.4f} "
                     f"{rate:7.4f}    N/A")
    return "\n".join(lines) + "\n"


def railyard(options, *words):
    done = subprocess.run([options.railyard, *words], capture_output=True, text=True, timeout=120)
    if done.returncode != 0:
        raise RuntimeError(f"railyard {' '.join(words)}: {done.stdout}{done.stderr}")
    return done.stdout


def fit(options, directory, times, mbit, key="median"):
    """The profile that two ranks' times give; `key`: which of each size's."""
    log = os.path.join(directory, f"two-ranks-{mbit}.log")
    profile = os.path.join(directory, f"gloo-{mbit}.yaml")
    with open(log, "w", encoding="utf-8") as file:
        file.write(nccl_tests_log(times, key))
    print(railyard(options, "calibrate", "fit", SCENARIO, log, "--set",
                   f"cluster.fabric.link_rate={mbit}Mb/s", "--part", "--name", f"gloo-{mbit}",
                   "-o", profile))
    return profile


def predict(options, profile, ranks, sizes, mbit):
    sizes_text = ",".join(f"{size}B" for size in sizes)
    text = railyard(options, "run", SCENARIO, "--json", "--set", f"cluster.nodes={ranks}",
                    "--set", f"cluster.fabric.link_rate={mbit}Mb/s",
                    "--set", f"profile=[cpu-host,{profile}]",
                    "--set", f"collectives=[{{collective: AllReduce, sizes: [{sizes_text}]}}]")
    rows = json.loads(text)["collectives"]
    return {row["size_bytes"]: row["time_us"] for row in rows}


def line(ranks, mbit, size, row, predicted):
    error = predicted / row["median"] - 1
    print(f"{ranks} ranks {mbit:5d} Mb/s {size // KIB:6d} KiB  measured {row['median']:10.0f} us "
          f"({row['min']:.0f} to {row['max']:.0f}, {row['count']} calls)  predicted "
          f"{predicted:10.0f} us  {error:+6.1%}  processor {row['busy'] / row['median']:5.0%}",
          flush=True)
    return error


def plain_share(star, mbit):
    """What a ring of plain sockets gets of the links' goodput."""
    words = [[sys.executable, "-B", os.path.join(HERE, "plain_ring.py"), str(rank), PLAIN_PORT,
              str(PLAIN_BYTES), str(PLAIN_ROUNDS), *star.addresses] for rank in range(star.ranks)]
    time = float(star.run_all(words)[0])
    sent = 2 * (star.ranks - 1) / star.ranks * PLAIN_BYTES
    return sent / (mbit / 8 * SEGMENT / FRAME) / time


def check_four(options, star, predicted, mbit):
    sizes, good, table, share = sorted(predicted), True, {}, 1.0
    for _ in range(ATTEMPTS):
        found = measure(options, star, sizes, mbit)
        table.update(found if not table else lower({s: table[s] for s in found}, found))
        sizes = [s for s in sorted(predicted)
                 if predicted[s] / table[s]["median"] - 1 < -TOLERANCE]
        if not sizes or mbit >= 1000:
            break
        share = min(share, plain_share(star, mbit))
        print(f"  too long, measured again: {[size // KIB for size in sizes]} KiB; plain sockets "
              f"get {share:.0%} of the links", flush=True)
    shown = 0
    for size, row in sorted(table.items()):
        error = line(4, mbit, size, row, predicted[size])
        early = error if options.full else predicted[size] / row["min"] - 1
        busy = 4 * row["busy"] / row["median"] >= os.cpu_count() or (
            early < -TOLERANCE and share < PLAIN_SHARE)
        shown_only = mbit >= 1000 or (busy and not options.full)
        good &= (error <= TOLERANCE and early >= -TOLERANCE) or shown_only
        shown += shown_only
    if shown:
        print(f"  {shown} of {len(table)} rows shown only: the processors decide", flush=True)
    return good, table, len(table) - shown


def check_rate(options, mbit, sizes, directory):
    with Star(2) as star:
        star.shape(mbit)
        two = lower(measure(options, star, sizes, mbit), measure(options, star, sizes, mbit))
    profile = fit(options, directory, two, mbit, "median" if options.full else "min")
    for size, time in sorted(predict(options, profile, 2, sizes, mbit).items()):
        line(2, mbit, size, two[size], time)
    predicted = predict(options, profile, 4, sizes, mbit)
    with Star(4) as star:
        star.shape(mbit)
        good, four, judged = check_four(options, star, predicted, mbit)
    return good, {"rate_mbit": mbit, "two": two, "four": four, "predicted_four": predicted,
                  "judged": judged}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("probe")
    parser.add_argument("railyard")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--rates")
    parser.add_argument("--json")
    options = parser.parse_args()
    go_first()
    sizes = [64 * KIB, 128 * KIB] + [256 * KIB * 4 ** power
                                     for power in range(5 if options.full else 4)]
    rates = options.rates or ("200,500,1000" if options.full else "200,500")
    good, results = True, []
    with tempfile.TemporaryDirectory() as directory:
        for mbit in map(int, rates.split(",")):
            fits, table = check_rate(options, mbit, sizes, directory)
            good &= fits
            results.append(table)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=1)
    if not any(table["judged"] for table in results):
        print("skipped: no row was left to judge")
        return 77
    print("passed" if good else "FAILED: four ranks are not predicted within "
          f"{TOLERANCE:.0%}", flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Refused as why:
        print(f"skipped: no star of shaped links between network namespaces here: {why}")
        sys.exit(77)
