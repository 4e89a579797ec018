#!/usr/bin/env python3
"""Measures a GPU and prints the `efficiency` block of a cluster file: your own times win over the built-in tables.

usage: measure_gpu.py [--into CLUSTER.json] [--dtype bf16] [--quick]            one GPU, a few minutes, needs PyTorch
       torchrun --nproc-per-node 8 measure_gpu.py [--into CLUSTER.json]         the node's collectives too
       measure_gpu.py --nccl-tests all_reduce=LOG --ranks N [--into CLUSTER.json]   no GPU: reads a log of nccl-tests

--into puts the block into a cluster file (what it holds already stays, lists are added to); without it the block is
printed. Times are medians of repeated launches after warm-up: what training sustains, not a short burst.

Collectives across nodes: run nccl-tests under your launcher and read its log, for example
  mpirun -np 32 -N 8 all_reduce_perf -b 8M -e 1G -f 4 -g 1 > all_reduce.log
  measure_gpu.py --nccl-tests all_reduce=all_reduce.log --ranks 32 --into cluster.json
"""
import argparse
import json
import os
import re
import statistics
import sys
import time

GEMM_TOKENS = (2048, 8192)
GEMM_SHAPES = ((4096, 4096), (12288, 4096), (4096, 14336), (28672, 4096), (8192, 8192), (28672, 8192), (8192, 28672))
ATTENTION_SHAPES = ((1, 32, 4096, 128), (4, 32, 2048, 128), (1, 32, 16384, 128), (2, 32, 4096, 64))
MESSAGES = tuple(2**power for power in range(20, 31, 2))
OPERATIONS = {"all_reduce": "all_reduce", "all_gather": "all_gather", "reduce_scatter": "reduce_scatter", "alltoall": "all_to_all", "all_to_all": "all_to_all"}


def positive(text):
    value = int(text)
    if value < 2:
        raise argparse.ArgumentTypeError("at least 2")
    return value


def parse_nccl_tests(text):
    """[(bytes, seconds)] of the out-of-place columns of a nccl-tests log."""
    points = []
    for line in text.splitlines():
        cells = line.split()
        # size count type [redop] [root] time algbw busbw ...
        if len(cells) < 8 or not cells[0].isdigit() or not cells[1].isdigit():
            continue
        numbers = [i for i, cell in enumerate(cells) if i > 2 and re.fullmatch(r"\d+\.\d+", cell)]
        if not numbers or int(cells[0]) == 0:
            continue
        points.append((int(cells[0]), float(cells[numbers[0]]) * 1e-6))
    return points


def from_logs(specs, ranks):
    points = []
    for spec in specs:
        name, equals, path = spec.partition("=")
        if not equals or name not in OPERATIONS:
            sys.exit(f"--nccl-tests {spec}: write OPERATION=LOG, OPERATION one of {', '.join(sorted(OPERATIONS))}")
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                rows = parse_nccl_tests(file.read())
        except OSError as error:
            sys.exit(f"{path}: {error.strerror}")
        if not rows:
            sys.exit(f"{path}: no rows of nccl-tests (size, count, type, ..., time)")
        # nccl-tests prints the whole buffer of an all-gather or reduce-scatter: the tensor over its group, as we do.
        points += [{"op": OPERATIONS[name], "group_size": ranks, "message_bytes": size, "seconds": seconds} for size, seconds in rows]
    return points


def median_seconds(torch, run, seconds):
    """Median of launches, repeated for `seconds` after a warm-up of half of that."""
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    until = time.monotonic() + seconds / 2
    while time.monotonic() < until:
        run()
        torch.cuda.synchronize()
    times, until = [], time.monotonic() + seconds
    while time.monotonic() < until or len(times) < 5:
        start.record()
        run()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) * 1e-3)
    return statistics.median(times)


def measure_products(torch, dtype, name, seconds):
    points = []
    for tokens in GEMM_TOKENS:
        for n, k in GEMM_SHAPES:
            a, b = torch.randn(tokens, k, device="cuda", dtype=dtype), torch.randn(n, k, device="cuda", dtype=dtype)
            points.append({"m": tokens, "n": n, "k": k, "dtype": name, "seconds": median_seconds(torch, lambda: a @ b.t(), seconds)})
    return points


def measure_attention(torch, dtype, seconds):
    points = []
    attention = torch.nn.functional.scaled_dot_product_attention
    for batch, heads, length, head_dim in ATTENTION_SHAPES:
        q, k, v = (torch.randn(batch, heads, length, head_dim, device="cuda", dtype=dtype, requires_grad=True) for _ in range(3))
        shape = {"batch": batch, "heads": heads, "seq_length": length, "head_dim": head_dim}
        forward = median_seconds(torch, lambda: attention(q, k, v, is_causal=True), seconds)
        out = attention(q, k, v, is_causal=True)
        grad = torch.randn_like(out)
        backward = median_seconds(torch, lambda: torch.autograd.grad(out, (q, k, v), grad, retain_graph=True), seconds)
        points.append({**shape, "pass": "forward", "seconds": forward})
        points.append({**shape, "pass": "backward", "seconds": backward})
    return points


def measure_collectives(torch, seconds):
    dist = torch.distributed
    ranks, points = dist.get_world_size(), []
    for size in MESSAGES:
        whole = torch.empty(size // 2, device="cuda", dtype=torch.bfloat16)
        part = torch.empty(size // 2 // ranks, device="cuda", dtype=torch.bfloat16)
        other = torch.empty_like(whole)
        runs = {
            "all_reduce": lambda: dist.all_reduce(whole),
            "all_gather": lambda: dist.all_gather_into_tensor(whole, part),
            "reduce_scatter": lambda: dist.reduce_scatter_tensor(part, whole),
            "all_to_all": lambda: dist.all_to_all_single(other, whole),
        }
        for op, run in runs.items():
            # Every rank has to launch as often as the others: a fixed number of launches.
            for _ in range(5):
                run()
            torch.cuda.synchronize()
            start = time.monotonic()
            count = 20
            for _ in range(count):
                run()
            torch.cuda.synchronize()
            points.append({"op": op, "group_size": ranks, "message_bytes": size, "seconds": (time.monotonic() - start) / count})
    return points


def measure(options):
    try:
        import torch
    except ImportError:
        sys.exit("PyTorch is not installed: it launches what is measured. Without it --nccl-tests reads logs.")
    if not torch.cuda.is_available():
        sys.exit("torch.cuda sees no GPU here")
    many = int(os.environ.get("WORLD_SIZE", "1")) > 1
    if many:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        torch.distributed.init_process_group("nccl")
    seconds = 0.2 if options.quick else 2.0
    dtype = {"bf16": torch.bfloat16, "fp16": torch.float16}[options.dtype]
    block = {"gemm": measure_products(torch, dtype, options.dtype, seconds), "attention": measure_attention(torch, dtype, seconds)}
    if many:
        block["collectives"] = measure_collectives(torch, seconds)
        first = torch.distributed.get_rank() == 0
        torch.distributed.destroy_process_group()
        if not first:
            sys.exit(0)
    block["source"] = f"measure_gpu.py on {torch.cuda.get_device_name()}, torch {torch.__version__}"
    return block


def rounded(block):
    for points in block.values():
        if isinstance(points, list):
            for point in points:
                point["seconds"] = float(f"{point['seconds']:.5g}")
    return block


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--into", metavar="CLUSTER.json", help="put the block into this cluster file")
    parser.add_argument("--dtype", choices=("bf16", "fp16"), default="bf16")
    parser.add_argument("--quick", action="store_true", help="a tenth of the time, for a first look")
    parser.add_argument("--nccl-tests", action="append", default=[], metavar="OPERATION=LOG")
    parser.add_argument("--ranks", type=positive, help="GPUs that the logs were made with")
    options = parser.parse_args()
    if bool(options.nccl_tests) != (options.ranks is not None):
        parser.error("--nccl-tests and --ranks belong together")
    if options.nccl_tests:
        block = {"collectives": from_logs(options.nccl_tests, options.ranks)}
    else:
        block = measure(options)
    block = rounded(block)
    if options.into is None:
        print(json.dumps({"efficiency": block}, indent=1))
        return
    with open(options.into, encoding="utf-8") as file:
        cluster = json.load(file)
    have = cluster.setdefault("efficiency", {})
    for name, points in block.items():
        have[name] = have.get(name, []) + points if isinstance(points, list) else points
    temporary = options.into + ".new"
    with open(temporary, "w", encoding="utf-8") as file:
        json.dump(cluster, file, indent=1)
        file.write("\n")
    os.replace(temporary, options.into)
    print(f"wrote {options.into}: {sum(len(p) for p in block.values() if isinstance(p, list))} points")


if __name__ == "__main__":
    main()
