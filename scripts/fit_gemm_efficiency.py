#!/usr/bin/env python3
"""Fits the `gemm_efficiency` of configs/gpus/ to a table of measured matrix products.

usage: fit_gemm_efficiency.py TABLE.csv [GPU...]
TABLE.csv has the columns gpu, dtype, m, n, k, latency_ms, source; rows of dtype bf16 count, and of a GPU with several
sources those of the largest (a source ends at its first ':'). Prints one line a GPU: the constants, the mean error of every row and of the rows with m >= 1024 and
n, k >= 512 (the shapes of training), and the error of the constants that configs/gpus/ holds now.

The form is that of gemm_seconds() in src/physics/timing.cpp without `sustained`, which comes from step times.
memory_fraction stays 0.8. Nelder-Mead on the mean error of log(time), from fixed starts: the result is reproducible.
"""
import csv
import glob
import json
import math
import os
import random
import statistics
import sys

TILES = ((256, 1.0), (128, 0.97), (64, 0.93))
NAMES = ("peak_fraction", "k0", "wave_quantisation", "launch_us")


def seconds(gpu, constants, m, n, k):
    fraction, k0, quantisation, launch_us = constants
    processors = gpu.get("multiprocessors", 108)
    rates = gpu["dense_tflops"]
    peak = rates.get("bf16", rates.get("fp16")) * 1e12 / processors * fraction
    best = math.inf
    for rows, share in TILES:
        waves = math.ceil(m / rows) * math.ceil(n / 128) / processors
        waves = quantisation * math.ceil(waves) + (1 - quantisation) * max(waves, 1)
        best = min(best, waves * 2 * rows * 128 * (k + k0) / (peak * share))
    memory = 2 * (m * k + k * n + m * n) / (0.8e9 * gpu["memory_bandwidth_gb_s"])
    return max(best, memory) + launch_us * 1e-6


def error(gpu, constants, rows):
    if not rows:
        return math.nan
    return statistics.mean(abs(seconds(gpu, constants, m, n, k) / t - 1) for m, n, k, t in rows)


def loss(gpu, constants, rows):
    fraction, k0, quantisation, launch_us = constants
    if not (0.1 < fraction < 1 and 0 <= k0 < 500 and 0 <= quantisation <= 1 and 0 <= launch_us <= 5):
        return math.inf
    return statistics.mean(abs(math.log(seconds(gpu, constants, m, n, k) / t)) for m, n, k, t in rows)


def minimise(function, start, steps=150):
    """Nelder and Mead 1965."""
    points = [list(start)]
    for i in range(len(start)):
        point = list(start)
        point[i] = point[i] * 1.2 + 0.05
        points.append(point)
    points = sorted(((function(p), p) for p in points), key=lambda x: x[0])
    for _ in range(steps):
        worst = points[-1][1]
        centre = [statistics.mean(p[j] for _, p in points[:-1]) for j in range(len(start))]
        move = lambda s: [c + s * (c - w) for c, w in zip(centre, worst)]
        tried = (function(move(1)), move(1))
        if tried[0] < points[0][0]:
            further = (function(move(2)), move(2))
            tried = min(tried, further, key=lambda x: x[0])
        elif tried[0] >= points[-2][0]:
            tried = (function(move(-0.5)), move(-0.5))
            if tried[0] >= points[-1][0]:
                best = points[0][1]
                shrunk = [[b + 0.5 * (q - b) for b, q in zip(best, p)] for _, p in points[1:]]
                points = [points[0]] + [(function(p), p) for p in shrunk]
                points.sort(key=lambda x: x[0])
                continue
        points[-1] = tried
        points.sort(key=lambda x: x[0])
    return points[0][1]


def main():
    if len(sys.argv) < 2 or not os.path.exists(sys.argv[1]):
        print(__doc__ if len(sys.argv) < 2 else f"{sys.argv[1]}: no such table; nothing fitted")
        return
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "configs", "gpus")
    gpus = {}
    for path in sorted(glob.glob(os.path.join(root, "*.json"))):
        gpus.update((gpu["name"], gpu) for gpu in json.load(open(path))["gpus"])
    sources = {}
    for row in csv.DictReader(open(sys.argv[1])):
        if row["dtype"] == "bf16":
            point = (int(row["m"]), int(row["n"]), int(row["k"]), float(row["latency_ms"]) * 1e-3)
            sources.setdefault(row["gpu"], {}).setdefault(row["source"].split(":")[0], []).append(point)
    table = {gpu: max(of.values(), key=len) for gpu, of in sources.items()}
    for name in sys.argv[2:] or sorted(table):
        gpu, rows = gpus[name], table[name]
        training = [r for r in rows if r[0] >= 1024 and r[1] >= 512 and r[2] >= 512]
        sample = [r for r in rows if r[0] >= 512 and r[1] >= 256 and r[2] >= 256]
        sample = random.Random(1).sample(sample, min(400, len(sample)))
        constants = minimise(lambda c: loss(gpu, c, sample), (0.75, 30, 0.2, 3))
        line = ", ".join(f"{key} {value:.3g}" for key, value in zip(NAMES, constants))
        line += f"; error {error(gpu, constants, rows):.1%}, training shapes {error(gpu, constants, training):.1%}"
        now = gpu.get("gemm_efficiency")
        if now:
            line += f"; configs {error(gpu, [now[key] for key in NAMES], training):.1%}"
        print(f"{name}: {len(rows)} rows; {line}", flush=True)


if __name__ == "__main__":
    main()
