#!/usr/bin/env python3
"""What PyTorch's DistributedDataParallel really does with buckets.

Two Gloo processes on this host train toy models for four iterations; rank 0 writes one block per
model to OUTPUT:

    model NAME
    initial BYTES...              bucket sizes at construction, in launch order
    rebuilt_before ITERATION      the iteration whose forward rebuilt the buckets; 0 = never
    rebuilt BYTES...              bucket sizes after the rebuild, in launch order
    indices I,I,... I,I,...       parameter indices of each rebuilt bucket
    arrival I...                  order in which the gradients of the last iteration arrived

The toy models have twins in tests/models/ddp_oracle_test.cpp; change both together.
Usage: ddp_buckets.py OUTPUT
"""
import logging
import os

import two_ranks

CAP_MB = 0.0005  # 524 bytes: several buckets even for toys
FIRST_BUCKET_BYTES = 128
ITERATIONS = 4
TIMEOUT_S = 50


def toy_models():
    import torch
    from torch import nn

    class Tied(nn.Module):
        """The output projection shares the embedding's weight, which so arrives last."""

        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(13, 8)
            self.fc1 = nn.Linear(8, 24)
            self.norm = nn.LayerNorm(24)
            self.fc2 = nn.Linear(24, 8)
            self.head = nn.Linear(8, 13, bias=False)
            self.head.weight = self.embed.weight

        def forward(self, x):
            return self.head(self.fc2(self.norm(self.fc1(self.embed(x)))))

    class Shuffled(nn.Module):
        """Registered head first; convolutions with bias; one Linear used twice."""

        def __init__(self):
            super().__init__()
            self.head = nn.Linear(16, 5)
            self.twice = nn.Linear(16, 16)
            self.conv2 = nn.Conv2d(6, 4, 3, padding=1)
            self.bn = nn.BatchNorm2d(6)
            self.conv1 = nn.Conv2d(3, 6, 3, padding=1)

        def forward(self, x):
            y = self.conv2(self.bn(self.conv1(x)).relu())
            y = y.mean(3).flatten(1)
            return self.head(self.twice(torch.tanh(self.twice(y))))

    class Unused(nn.Module):
        """`spare` takes no part in forward."""

        def __init__(self):
            super().__init__()
            self.fc1 = nn.Linear(8, 16)
            self.spare = nn.Linear(8, 8)
            self.fc2 = nn.Linear(16, 8)

        def forward(self, x):
            return self.fc2(torch.relu(self.fc1(x)))

    class Frozen(nn.Module):
        """A frozen first layer has no place in DDP's parameter list."""

        def __init__(self):
            super().__init__()
            self.fc1 = nn.Linear(8, 16)
            self.fc2 = nn.Linear(16, 16)
            self.fc3 = nn.Linear(16, 8)
            self.fc1.weight.requires_grad_(False)
            self.fc1.bias.requires_grad_(False)

        def forward(self, x):
            return self.fc3(torch.relu(self.fc2(torch.relu(self.fc1(x)))))

    class Sparse(nn.Module):
        """A sparse embedding is a bucket of its own."""

        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(13, 8, sparse=True)
            self.fc1 = nn.Linear(8, 16)
            self.fc2 = nn.Linear(16, 8)

        def forward(self, x):
            return self.fc2(torch.relu(self.fc1(self.embed(x))))

    class TwoTypes(nn.Module):
        """fp64 and fp32 parameters fill separate buckets."""

        def __init__(self):
            super().__init__()
            self.fc1 = nn.Linear(8, 16)
            self.fc2 = nn.Linear(16, 16).double()
            self.fc3 = nn.Linear(16, 8)

        def forward(self, x):
            y = self.fc2(torch.relu(self.fc1(x)).double())
            return self.fc3(torch.relu(y).float())

    class Branches(nn.Module):
        """Parallel branches: gradients come back in the reverse of the order they ran in."""

        def __init__(self):
            super().__init__()
            self.word = nn.Embedding(13, 8)
            self.position = nn.Embedding(6, 8)
            self.token_type = nn.Embedding(2, 8)
            self.norm = nn.LayerNorm(8)
            self.query = nn.Linear(8, 8)
            self.key = nn.Linear(8, 8)
            self.value = nn.Linear(8, 8)
            self.out = nn.Linear(8, 8)
            self.self_attention = nn.MultiheadAttention(8, 2, batch_first=True)

        def forward(self, x):
            x = self.word(x) + self.token_type(torch.zeros_like(x))
            x = self.norm(x + self.position(torch.arange(6)))
            query, key, value = self.query(x), self.key(x), self.value(x)
            weights = torch.softmax(query @ key.transpose(1, 2), dim=-1)
            x = x + self.out(weights @ value)
            return self.self_attention(x, x, x, need_weights=False)[0]

    tokens = torch.arange(12).reshape(2, 6) % 13
    image = torch.linspace(-1, 1, 2 * 3 * 4 * 4).reshape(2, 3, 4, 4)
    rows = torch.linspace(-1, 1, 16).reshape(2, 8)
    return [
        ("tied", Tied, tokens, {}),
        ("shuffled", Shuffled, image, {}),
        ("find_unused", Unused, rows, {"find_unused_parameters": True}),
        ("static", Shuffled, image, {"static_graph": True}),
        ("static_unused", Unused, rows, {"static_graph": True}),
        ("frozen", Frozen, rows, {}),
        ("sparse", Sparse, tokens, {}),
        ("two_types", TwoTypes, rows, {}),
        ("branches", Branches, tokens, {}),
        ("bucket_view", Tied, tokens, {"gradient_as_bucket_view": True}),
        ("small_last", Tied, tokens, {"environment": {"DDP_SET_LAST_BUCKET_CAP": "1"}}),
    ]


def numbers(text):
    return [part.strip() for part in str(text).split(",") if part.strip()]


def bucket_groups(text):
    """'0 1, 2 3' style text of the logger as 'I,I I,I'."""
    return " ".join(",".join(group.split()) for group in str(text).split(",") if group.strip())


class RebuildWatch(logging.Handler):
    """The logging data shows a rebuild one iteration late; DDP's own log message does not."""

    def __init__(self):
        super().__init__()
        self.rebuilt = False
        log = logging.getLogger("torch.nn.parallel.distributed")
        log.setLevel(logging.INFO)
        log.propagate = False
        log.handlers = [self]

    def emit(self, record):
        self.rebuilt = self.rebuilt or "rebuilt" in record.getMessage()


def measure(model_class, inputs, options):
    import torch
    from torch.nn.parallel import DistributedDataParallel

    torch.manual_seed(1)
    watch = RebuildWatch()
    options = dict(options)
    environment = options.pop("environment", {})
    os.environ.update(environment)
    ddp = DistributedDataParallel(model_class(), bucket_cap_mb=CAP_MB, **options)
    initial = ddp._get_ddp_logging_data()["bucket_sizes"]
    rebuilt_before = 0
    for iteration in range(1, ITERATIONS + 1):
        loss = ddp(inputs).float().pow(2).sum()
        if watch.rebuilt and not rebuilt_before:
            rebuilt_before = iteration
        loss.backward()
    ddp(inputs)  # a forward publishes the statistics of the backward before it
    for name in environment:
        del os.environ[name]
    return initial, rebuilt_before, ddp._get_ddp_logging_data()


def run_rank(rank, directory, output):
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{directory}/store", rank=rank, world_size=2)
    dist._DEFAULT_FIRST_BUCKET_BYTES = FIRST_BUCKET_BYTES
    lines = []
    for name, model_class, inputs, options in toy_models():
        initial, rebuilt_before, data = measure(model_class, inputs, options)
        lines += [
            f"model {name}",
            "initial " + " ".join(numbers(initial)),
            f"rebuilt_before {rebuilt_before}",
            "rebuilt " + " ".join(numbers(data.get("rebuilt_bucket_sizes", ""))),
            "indices " + bucket_groups(data.get("rebuilt_per_bucket_param_indices", "")),
            "arrival " + " ".join(numbers(data.get("prev_iteration_grad_ready_order_indices", ""))),
        ]
    dist.barrier()
    if rank == 0:
        with open(output, "w", encoding="ascii") as file:
            file.write("\n".join(lines) + "\n")
    dist.destroy_process_group()


if __name__ == "__main__":
    two_ranks.main(run_rank, TIMEOUT_S)
