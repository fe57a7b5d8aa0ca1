#!/usr/bin/env python3
"""A real PyTorch DDP step over Gloo against `railyard run`.

    gloo_ddp.py PROBE_GLOO RAILYARD [--ranks 2,4] [--rates 200,500] [--json FILE]

Ranks are processes in network namespaces on a star of shaped links (star.py), each with a stack of
equal Linear layers on its processor, wrapped in DistributedDataParallel with the Gloo back end.

Measured: the median step of STEPS, the slowest rank's, with buckets of 1, 5 and 25 MiB; with 1, 2
and 4 micro-batches a step, all but the last under no_sync(); with fp16_compress_hook.

Predicted: the same job as a scenario. The network's costs are fitted to AllReduces of TWO ranks
(gloo_ranks.py), whatever the number of ranks here. The processor's speed is what this job shows
WITHOUT communication: forward, backward and optimizer of the same model, all ranks at once, give
one FLOP rate and one memory rate. Nothing is taken from the steps that are predicted.

A report, not a test: it states what came of it and fails only if it cannot measure. Needs PyTorch
with Gloo in the interpreter that runs it, and root.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time

import gloo_ranks
from privileges import Refused
from star import Star

LAYERS, WIDTH, BATCH = 8, 1024, 32
WARM_UP, STEPS = 3, 5
PORT = "29778"
SIZES = [1 << power for power in (16, 17, 18, 19, 20, 22)]  # AllReduces the network is fitted to
CASES = ([{"bucket_cap_mb": cap} for cap in (1, 5, 25)]
         + [{"bucket_cap_mb": 25, "accumulation": n} for n in (2, 4)]
         + [{"bucket_cap_mb": cap, "hook": "fp16_compress"} for cap in (5, 25)])


# --- the job itself, one process ----------------------------------------------------------------
class Job:
    def __init__(self, rank, world, address):
        import torch
        import torch.distributed as dist
        self.torch, self.dist = torch, dist
        torch.set_num_threads(1)
        torch.manual_seed(1)
        dist.init_process_group("gloo", init_method=f"tcp://{address}:{PORT}", rank=rank,
                                world_size=world)
        self.input = torch.randn(BATCH, WIDTH)

    def model(self):
        layers = [self.torch.nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS)]
        return self.torch.nn.Sequential(*layers)

    def slowest(self, seconds):
        tensor = self.torch.tensor([seconds], dtype=self.torch.float64)
        self.dist.all_reduce(tensor, op=self.dist.ReduceOp.MAX)
        return tensor.item()

    def compute(self):
        """Seconds of forward, backward and optimizer without DDP, all ranks at once."""
        model = self.model()
        optimizer = self.torch.optim.SGD(model.parameters(), lr=1e-4)
        parts = []
        for _ in range(WARM_UP + STEPS):
            optimizer.zero_grad(set_to_none=True)
            self.dist.barrier()
            marks = [time.perf_counter()]
            loss = model(self.input).square().mean()
            marks.append(time.perf_counter())
            loss.backward()
            marks.append(time.perf_counter())
            optimizer.step()
            marks.append(time.perf_counter())
            parts.append([self.slowest(b - a) for a, b in zip(marks, marks[1:])])
        return [statistics.median(column) for column in zip(*parts[WARM_UP:])]

    def step_times(self, case):
        from contextlib import nullcontext
        from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
        from torch.nn.parallel import DistributedDataParallel
        model = DistributedDataParallel(self.model(), bucket_cap_mb=case["bucket_cap_mb"])
        if case.get("hook"):
            model.register_comm_hook(None, default_hooks.fp16_compress_hook)
        optimizer = self.torch.optim.SGD(model.parameters(), lr=1e-4)
        micro_batches = case.get("accumulation", 1)
        times = []
        for _ in range(WARM_UP + STEPS):
            self.dist.barrier()
            start = time.perf_counter()
            for index in range(micro_batches):
                with nullcontext() if index + 1 == micro_batches else model.no_sync():
                    model(self.input).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            times.append(self.slowest(time.perf_counter() - start))
        return times[WARM_UP:]


def worker(rank, world, address):
    job = Job(rank, world, address)
    found = {"compute": job.compute(), "cases": [job.step_times(case) for case in CASES]}
    job.dist.barrier()
    if rank == 0:
        print(json.dumps(found), flush=True)


# --- the prediction -----------------------------------------------------------------------------
def network():
    """The stack of layers as a scenario's model, forward FLOPs of one sample."""
    parameters, layers = [], []
    for index in range(LAYERS):
        names = [f"{index}.weight", f"{index}.bias"]
        parameters += [{"name": names[0], "shape": [WIDTH, WIDTH]},
                       {"name": names[1], "shape": [WIDTH]}]
        layers.append({"name": str(index), "kind": "gemm", "parameters": names,
                       "forward_flops": 2 * WIDTH * WIDTH, "input_elements": WIDTH,
                       "output_elements": WIDTH, "has_dgrad": index > 0})
    return {"name": "stack", "parameters": parameters, "layers": layers}


def processor(compute):
    """Parameters that give the measured times of compute, spread over the layers by their work."""
    forward, backward, step = compute
    flops = (3 * LAYERS - 1) * 2 * WIDTH * WIDTH * BATCH
    weights = LAYERS * (WIDTH * WIDTH + WIDTH)
    return {"gpu": {"peak_fp32": f"{flops / (forward + backward) / 1e9:.4f}GFLOP/s",
                    "gemm_efficiency": 1.0, "memory_efficiency": 1.0,
                    "hbm_bandwidth": f"{12 * weights / step / 1e9:.4f}GB/s"}}


def scenario(options, run, case, compute):
    job = {"model": network(), "batch_per_gpu": BATCH, "precision": "fp32", "optimizer": "sgd",
           "iterations": 5, "torch": options.torch, "bucket_cap_mb": case["bucket_cap_mb"]}
    if "accumulation" in case:
        job["gradient_accumulation"] = case["accumulation"]
    if "hook" in case:
        job["comm_hook"] = case["hook"]
    fabric = {"kind": "switch", "link_rate": f"{run.mbit}Mb/s"}
    return {"railyard": 1, "name": "gloo-ddp", "backend": "gloo",
            "cluster": {"machine": "cpu-host", "nodes": run.ranks, "gpus_per_node": 1,
                        "fabric": fabric},
            "profile": ["cpu-host", run.profile], "parameters": processor(compute), "ddp": job}


def predict(options, run, case, compute):
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        json.dump(scenario(options, run, case, compute), file)  # JSON is YAML
        file.flush()
        result = json.loads(gloo_ranks.railyard(options, "run", file.name, "--json"))
    return result["step_time_us"] * 1e-6


class Run:
    """One number of ranks on links of one rate."""

    def __init__(self, ranks, mbit, profile):
        self.ranks, self.mbit, self.profile = ranks, mbit, profile


def name_of(case):
    text = f"bucket {case['bucket_cap_mb']:2d} MiB"
    if "accumulation" in case:
        text += f", {case['accumulation']} micro-batches"
    return text + (f", {case['hook']}" if "hook" in case else "")


def compare(options, run):
    with Star(run.ranks) as star:
        star.shape(run.mbit)
        command = [sys.executable, "-B", os.path.abspath(__file__), "--worker"]
        outputs = star.run_all(
            [["env", "GLOO_SOCKET_IFNAME=veth0", "OMP_NUM_THREADS=1", *command, str(rank),
              str(run.ranks), star.addresses[0]] for rank in range(run.ranks)], timeout=580)
    found = json.loads(outputs[0].strip().splitlines()[-1])
    print(f"{run.ranks} ranks, {run.mbit} Mb/s; compute alone: forward, backward, optimizer "
          + ", ".join(f"{seconds * 1e3:.1f}" for seconds in found["compute"]) + " ms")
    rows = []
    for case, times in zip(CASES, found["cases"]):
        measured, predicted = statistics.median(times), predict(options, run, case,
                                                                found["compute"])
        rows.append({"case": case, "measured": times, "predicted": predicted})
        print(f"  {name_of(case):38s} measured {measured * 1e3:8.1f} ms ({min(times) * 1e3:.1f} to "
              f"{max(times) * 1e3:.1f})  predicted {predicted * 1e3:8.1f} ms  "
              f"{predicted / measured - 1:+6.1%}", flush=True)
    best = [min(rows[:3], key=key)["case"]["bucket_cap_mb"]
            for key in (lambda row: statistics.median(row["measured"]),
                        lambda row: row["predicted"])]
    print(f"  best bucket size: measured {best[0]} MiB, predicted {best[1]} MiB", flush=True)
    return {"ranks": run.ranks, "rate_mbit": run.mbit, "compute": found["compute"], "rows": rows}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("probe")
    parser.add_argument("railyard")
    parser.add_argument("--ranks", default="2,4")
    parser.add_argument("--rates", default="200,500")
    parser.add_argument("--json")
    options = parser.parse_args()
    import torch
    options.torch = ".".join(torch.__version__.split("+")[0].split(".")[:2])
    gloo_ranks.go_first()
    results = []
    with tempfile.TemporaryDirectory() as directory:
        for mbit in map(int, options.rates.split(",")):
            with Star(2) as star:
                star.shape(mbit)
                two = gloo_ranks.lower(gloo_ranks.measure(options, star, SIZES, mbit),
                                       gloo_ranks.measure(options, star, SIZES, mbit))
            profile = gloo_ranks.fit(options, directory, two, mbit)
            for ranks in map(int, options.ranks.split(",")):
                results.append(compare(options, Run(ranks, mbit, profile)))
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=1)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        worker(int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
        sys.exit(0)
    try:
        main()
    except Refused as why:
        print(f"skipped: no star of shaped links between network namespaces here: {why}")
        sys.exit(77)
