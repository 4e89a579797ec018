#!/usr/bin/env python3
"""Does `shardplan search` find what experts run?

  scripts/rediscover.py [FOLDER] [--bin PROGRAM] [--source KEY] [--all] [--json FILE]

FOLDER (or SHARDPLAN_EVIDENCE; default: ../shared) holds tools/evidence.py and evidence/throughput/rows.jsonl: measured
runs with their layouts. For each run whose layout is published the search is asked for the best layout of the same
model, GPUs, batch and sequence, over what the software of that run could do; printed are the published layout, its rank,
the best one, and by how much the published one is predicted to be slower. Of runs that differ in their layout alone the
fastest as measured counts: the others are the experiments that led to it (--all: all of them).

Exits 1 where the median gap is above 5%.
"""
import argparse
import collections
import json
import os
import statistics
import subprocess
import sys
import tempfile

# What the software of a source could choose among, besides degrees and micro batch. The rest is as the run states it.
MEGATRON_2021 = ["--schedule", "1f1b,interleaved", "--fsdp", "null", "--cp", "1", "--offload", "null"]
MEGATRON_CORE = ["--schedule", "1f1b,interleaved", "--fsdp", "null", "--offload", "null"]
TORCH = ["--offload", "null", "--schedule", "1f1b,interleaved,gpipe,bfs"]
DATA_PARALLEL = ["--offload", "null", "--tp", "1", "--pp", "1", "--cp", "1"]
DEEPSPEED_3D = ["--offload", "null", "--zero", "0,1", "--cp", "1", "--schedule", "1f1b"]
CHOICES = {
    "korthikanti-2022": MEGATRON_2021,
    "narayanan-2021": MEGATRON_2021,
    "megatron-2020": MEGATRON_2021 + ["--pp", "1", "--zero", "0"],
    "bigscience-tr11": DEEPSPEED_3D,
    "bigscience-1b3-v100": DEEPSPEED_3D,
    "vtrain": MEGATRON_2021,
    "mosaic": DATA_PARALLEL,
    "torchtitan": TORCH,
    "megatron-bridge": MEGATRON_CORE,
    "nemo-24.07": MEGATRON_CORE,
    "megatron-llama-example": MEGATRON_CORE,
}
OVERLAPS = ("grad_reduce", "param_gather", "tp", "p2p")


def layout_of(run):
    p, t = run["parallel"], run["training"]
    words = [f"TP{p.get('tensor', 1)}", f"PP{p.get('pipeline', 1)}x{p.get('virtual_pipeline', 1)}"]
    if p.get("context", 1) > 1:
        words.append(f"CP{p['context']}")
    if p.get("expert", 1) > 1:
        words.append(f"EP{p['expert']}")
    words.append(f"mbs{t.get('micro_batch_size', 1)}")
    words.append(str(p["fsdp"]) if p.get("fsdp") else f"zero{p.get('zero_stage') or 0}")
    recompute = t.get("recompute", "none")
    words.append(recompute if isinstance(recompute, str) else "+".join(recompute["modules"]))
    return " ".join(words)


def group_of(run, row):
    """What runs that differ in their layout alone share."""
    t = run["training"]
    return json.dumps([run["model"], run["cluster"], run["num_gpus"], t.get("seq_length"), t.get("global_batch_size"),
                       t.get("precision"), t.get("peft"), row["source"].get("key")], sort_keys=True)


def call(program, words, run):
    with tempfile.NamedTemporaryFile("w", suffix=".json", delete=False) as file:
        json.dump(run, file)
    try:
        done = subprocess.run([program, words[0], file.name] + words[1:], capture_output=True, text=True, timeout=600)
    finally:
        os.unlink(file.name)
    return done.returncode, done.stdout, done.stderr


def recomputes(run):
    """Modes to choose among: the published one too."""
    published = run["training"].get("recompute", "none")
    if not isinstance(published, str):
        return None
    modes = ["none", "full"]
    if run["training"].get("attention") == "eager":
        modes.insert(1, "selective")
    if published not in modes:
        modes.append(published)
    return ",".join(modes)


def search(program, run, flags):
    status, out, error = call(program, ["estimate", "--json"], run)
    if status not in (0, 1):
        return None, error.strip().splitlines()[0] if error.strip() else "refused"
    resolved = json.loads(out)["run"]
    words = ["search", "--json", "--rank", "--top", "1"] + flags
    overlap = resolved["training"]["overlap"]
    for name in OVERLAPS:
        words += ["--set", f"training.overlap.{name}={str(overlap[name]).lower()}"]
    modes = recomputes(run)
    if modes and "--recompute" not in flags:
        words += ["--recompute", modes]
    status, out, error = call(program, words, run)
    if status == 3:
        return None, "nothing fits"
    if status != 0:
        return None, error.strip().splitlines()[0] if error.strip() else f"exit {status}"
    return json.loads(out), None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", default=os.environ.get("SHARDPLAN_EVIDENCE", "../shared"))
    parser.add_argument("--bin", default=os.environ.get("SHARDPLAN", "build/release/shardplan"))
    parser.add_argument("--source", help="only this source")
    parser.add_argument("--all", action="store_true", help="every run, not the fastest of each group")
    parser.add_argument("--json", help="write every line there")
    options = parser.parse_args()
    tools = os.path.join(options.folder, "tools")
    if not os.path.isdir(tools):
        print(f"No evidence at {options.folder}: nothing checked.")
        return 0
    sys.path.insert(0, tools)
    import evidence  # noqa: E402

    rows = evidence.load(os.path.join(options.folder, "evidence/throughput/rows.jsonl"))
    groups = collections.OrderedDict()
    for row in rows:
        key = row["source"].get("key")
        if key not in CHOICES or (options.source and key != options.source):
            continue
        run, _ = evidence.to_run(row)
        if run is None:
            continue
        measured = evidence.measured(row, "time")
        step = measured[0] if isinstance(measured, tuple) else measured
        groups.setdefault(group_of(run, row), []).append((row, run, step))
    chosen = []
    for members in groups.values():
        timed = [m for m in members if isinstance(m[2], (int, float))]
        chosen += members if options.all or not timed else [min(timed, key=lambda m: m[2])]

    found = []
    by_source = collections.defaultdict(list)
    print(f"{'run':<26} {'GPUs':>5}  {'published':<44} {'rank':>6}  {'gap':>6}  best")
    for row, run, _ in chosen:
        result, why = search(options.bin, run, CHOICES[row["source"]["key"]])
        if result is None:
            print(f"{row['id']:<26} {run['num_gpus']:>5}  {layout_of(run):<44} {'-':>6}  {'-':>6}  {why}")
            continue
        stated, best = result["stated"], result["best"][0]
        gap = stated["step_s"] / best["step_s"] - 1
        fits = "" if stated["fits"] else "  (published: predicted not to fit)"
        print(f"{row['id']:<26} {run['num_gpus']:>5}  {layout_of(run):<44} {stated['rank']:>6}  {100 * gap:>5.1f}%  "
              f"{layout_of(best)}{fits}", flush=True)
        found.append({"id": row["id"], "source": row["source"]["key"], "model": row["model"].get("name"),
                      "num_gpus": run["num_gpus"], "published": layout_of(run), "rank": stated["rank"], "gap": gap,
                      "fits": stated["fits"], "best": layout_of(best), "layouts": result["space"]["layouts"]})
        found[-1]["gap"] = round(gap, 4)
        by_source[row["source"]["key"]].append(max(gap, 0))
    if not found:
        print("no run with a published layout")
        return 1
    print()
    for key, gaps in sorted(by_source.items()):
        print(f"{key:<26} {len(gaps):>4} runs  median gap {100 * statistics.median(gaps):5.1f}%  "
              f"within 5%: {sum(g <= 0.05 for g in gaps)}")
    of_sources = statistics.median(statistics.median(gaps) for gaps in by_source.values())
    print(f"{'median of the sources':<26} {len(by_source):>4} sources    gap {100 * of_sources:5.1f}%")
    median = statistics.median(max(f["gap"], 0) for f in found)
    print(f"{'all':<26} {len(found):>4} runs  median gap {100 * median:5.1f}%")
    if options.json:
        with open(options.json, "w") as file:
            file.write("[\n" + ",\n".join(json.dumps(line) for line in found) + "\n]\n")
    return 0 if median <= 0.05 else 1


if __name__ == "__main__":
    sys.exit(main())
