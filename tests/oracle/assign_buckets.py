#!/usr/bin/env python3
"""PyTorch's own bucket assignment of many parameter lists, on meta tensors (no memory).

Usage: assign_buckets.py INPUT OUTPUT
INPUT, read in order:
    tensors COUNT                     a new parameter list, one line per tensor:
    ELEMENTS DTYPE SPARSE             DTYPE as in models/nn/dtype.h, SPARSE 0 or 1
    case LIMIT[,LIMIT...] [I,I,...]   an assignment of the latest list; the second field is the
                                      index list, absent at construction
OUTPUT: per case one line, buckets separated by spaces, indices by commas.
"""
import signal
import sys

import torch
import torch.distributed as dist

TIMEOUT_S = 50
DTYPES = {
    "fp64": torch.float64,
    "fp32": torch.float32,
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
    "int64": torch.int64,
    "int32": torch.int32,
    "int8": torch.int8,
}


def integers(text):
    return [int(part) for part in text.split(",")]


def assign(tensors, sparse, fields):
    limits = integers(fields[0])
    order = integers(fields[1]) if len(fields) > 1 else []
    listed = [tensors[i] for i in order] if order else tensors
    buckets, _ = dist._compute_bucket_assignment_by_size(listed, limits, sparse, order)
    return " ".join(",".join(map(str, bucket)) for bucket in buckets)


def main(source, target):
    signal.alarm(TIMEOUT_S)
    tensors, sparse = [], []
    with open(source, encoding="ascii") as lines, open(target, "w", encoding="ascii") as answers:
        for line in lines:
            fields = line.split()
            if fields[0] == "tensors":
                tensors, sparse = [], []
            elif fields[0] == "case":
                answers.write(assign(tensors, sparse, fields[1:]) + "\n")
            else:
                tensors.append(torch.empty(int(fields[0]), dtype=DTYPES[fields[1]], device="meta"))
                sparse.append(fields[2] == "1")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: assign_buckets.py INPUT OUTPUT")
    main(sys.argv[1], sys.argv[2])
