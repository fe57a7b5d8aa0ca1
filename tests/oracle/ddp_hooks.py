#!/usr/bin/env python3
"""What PyTorch's PowerSGD hooks and join() really reduce, call by call.

Two Gloo processes on this host train a toy model; rank 0 writes to OUTPUT a line per iteration:

    powerSGD R RATE ITERATION NUMEL...     elements of every AllReduce of the hook, sorted
    batched R ITERATION NUMEL...
    join RANK CALLS...                     what rank RANK's Python called inside join(), in order:
                                           "r1" an AllReduce of one element, "b" buffers or model

The toy model has a twin in tests/models/ddp/hooks_oracle_test.cpp; change both together.
Usage: ddp_hooks.py OUTPUT
"""
import two_ranks

CAP_MB = 0.004
FIRST_BUCKET_BYTES = 1024
ITERATIONS = 4
TIMEOUT_S = 150


def toy_model():
    import torch
    from torch import nn

    class Toy(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(3, 8, 3, padding=1)
            self.bn = nn.BatchNorm2d(8)
            self.fc1 = nn.Linear(8 * 4 * 4, 20)
            self.fc2 = nn.Linear(20, 20)
            self.fc3 = nn.Linear(20, 4)

        def forward(self, x):
            x = torch.relu(self.bn(self.conv(x))).flatten(1)
            return self.fc3(torch.relu(self.fc2(torch.relu(self.fc1(x)))))

    torch.manual_seed(1)
    return Toy(), torch.linspace(-1, 1, 2 * 3 * 4 * 4).reshape(2, 3, 4, 4)


def power_sgd(name, hook, rank, rate):
    import torch.distributed as dist
    from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as module
    from torch.nn.parallel import DistributedDataParallel

    orthogonalize = module._orthogonalize
    if hook == "batched_powerSGD_hook":  # 1.13's own batched hook fails on a check of dimensions
        module._orthogonalize = lambda m, epsilon=0: orthogonalize(m.unsqueeze(0), epsilon)
    model, inputs = toy_model()
    ddp = DistributedDataParallel(model, bucket_cap_mb=CAP_MB, broadcast_buffers=False)
    state = module.PowerSGDState(None, matrix_approximation_rank=rank, start_powerSGD_iter=2,
                                 min_compression_rate=rate)
    ddp.register_comm_hook(state, getattr(module, hook))
    real, sizes, lines = dist.all_reduce, [], []

    class Done:
        """Gloo's two threads would wait for each other in the callbacks of two buckets."""

        def __init__(self, tensor):
            import torch

            self.future = torch.futures.Future()
            self.future.set_result([tensor])

        def get_future(self):
            return self.future

    def recording(tensor, group=None, async_op=False):
        sizes.append(tensor.numel())
        real(tensor, group=group)
        return Done(tensor)

    dist.all_reduce = recording
    for iteration in range(1, ITERATIONS + 1):
        ddp(inputs).pow(2).sum().backward()
        lines.append(f"{name} {iteration} " + " ".join(str(n) for n in sorted(sizes)))
        sizes.clear()
    dist.all_reduce = real
    module._orthogonalize = orthogonalize
    return lines


def join(rank):
    """Rank 1 has one input less than rank 0."""
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    model, inputs = toy_model()
    ddp = DistributedDataParallel(model, bucket_cap_mb=CAP_MB)
    real, calls = dist.all_reduce, []
    real_broadcast = dist._broadcast_coalesced

    def recording(tensor, *args, **kwargs):
        calls.append(f"r{tensor.numel()}")
        return real(tensor, *args, **kwargs)

    def recording_broadcast(*args, **kwargs):
        calls.append("b")
        return real_broadcast(*args, **kwargs)

    dist.all_reduce = recording
    dist._broadcast_coalesced = recording_broadcast
    with ddp.join():
        for _ in range(3 - rank):
            ddp(inputs).pow(2).sum().backward()
    dist.all_reduce = real
    dist._broadcast_coalesced = real_broadcast
    return f"join {rank} " + " ".join(calls)


def run_rank(rank, directory, output):
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{directory}/store", rank=rank, world_size=2)
    dist._DEFAULT_FIRST_BUCKET_BYTES = FIRST_BUCKET_BYTES
    lines = []
    for size, rate in [(1, 2.0), (2, 2.0), (4, 1.0), (1, 0.5)]:
        lines += power_sgd(f"powerSGD {size} {rate}", "powerSGD_hook", size, rate)
        lines += power_sgd(f"batched {size} {rate}", "batched_powerSGD_hook", size, rate)
    joins = [None, None]
    dist.all_gather_object(joins, join(rank))
    if rank == 0:
        with open(output, "w", encoding="ascii") as file:
            file.write("\n".join(lines + joins) + "\n")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    two_ranks.main(run_rank, TIMEOUT_S)
