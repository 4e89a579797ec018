#!/usr/bin/env python3
"""Compares the program with what was measured and writes docs/validation.md and its plots.

usage: validation.py [--bin PROGRAM] [--jobs N]            writes docs/validation.md and docs/images/validation_*.svg
       validation.py [--bin PROGRAM] [--jobs N] --check    exit 1 where they are not what would be written
       validation.py [--bin PROGRAM] [--jobs N] --figures  prints the figures only; --rows adds every row
PROGRAM is build/release/shardplan by default. Python 3 and its standard library only.

The measured runs are tests/evidence/measured_*.jsonl, the goals tests/evidence/goals.json; both are described in
tests/evidence/README.md. docs/validation_reasons.json says why rows are off and is written by hand: the first entry
whose `match` is found in "id model GPU precision offload" is taken; `sign` limits it to predictions that are too high
("+") or too low ("-").
"""
import argparse
import difflib
import hashlib
import json
import os
import re
import subprocess
import sys
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from statistics import fmean, median
from typing import Optional, Tuple

sys.dont_write_bytecode = True  # no __pycache__ in the source folder
from scatter_svg import scatter  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
EVIDENCE = os.path.join(ROOT, "tests", "evidence")
GIB = 2.0**30
WORST = 10


@dataclass(frozen=True)
class Kind:
    """What is compared: how it is called, printed and drawn."""

    name: str  # memory, time
    heading: str
    quantity: str
    scale: float  # of a printed unit
    decimals: int  # of an error in percent
    limit: float  # percent: the range of the plot
    explained: float  # an error above it should have a reason


MEMORY = Kind("memory", "Peak memory", "GiB", GIB, 2, 20, 0.03)
TIME = Kind("time", "Step time", "s", 1.0, 1, 30, 0.10)


@dataclass
class Result:
    row: dict
    measured: float
    predicted: Optional[float]  # None: refused
    band: Optional[Tuple[float, float]]
    fits: bool
    refusal: str = ""
    band_class: str = ""

    @property
    def error(self):
        """A refused row is 100% off."""
        return 1.0 if self.predicted is None else self.predicted / self.measured - 1


def read_rows(kind):
    with open(os.path.join(EVIDENCE, f"measured_{kind.name}.jsonl"), encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]


def predicted(kind, estimate, row):
    """The field that the measurement names, and the band around it where there is one."""
    if kind is TIME:
        return estimate["time"]["step_s"], tuple(estimate["time"]["step_band_s"])
    memory = estimate["memory"]
    stages, stage = memory["stages"], row.get("stage")
    if row["measured"].get("kind") == "max_reserved":
        if stage is not None:
            return stages[stage]["reserved_bytes"], None
        return memory["reserved_bytes"], tuple(memory["reserved_band_bytes"])
    allocated = [s["total_bytes"] - s["framework_bytes"] for s in stages]
    return (allocated[stage] if stage is not None else max(allocated)), None


def estimate(kind, program, row):
    measured = row["measured"]["step_s" if kind is TIME else "peak_bytes"]
    done = subprocess.run(
        [program, "estimate", "-", "--json"], input=json.dumps(row["run"]), capture_output=True, text=True, timeout=300
    )
    if done.returncode not in (0, 1):
        reason = (done.stderr.strip().splitlines() or [f"exit {done.returncode}"])[0]
        return Result(row, measured, None, None, False, reason)
    out = json.loads(done.stdout)
    value, band = predicted(kind, out, row)
    return Result(row, measured, value, band, out["memory"]["fits"], "", out["time"]["step_band_class"])


def run_all(kind, program, jobs):
    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(lambda row: estimate(kind, program, row), read_rows(kind)))


# Figures


def configurations(results):
    """Errors of the distinct configurations: rows that share dup_group count once, with their mean error."""
    groups = defaultdict(list)
    for r in results:
        groups[r.row.get("dup_group") or r.row["id"]].append(r.error)
    return [fmean(errors) for errors in groups.values()]


def by_source(results):
    sources = defaultdict(list)
    for r in results:
        sources[r.row["group"]].append(r)
    return dict(sorted(sources.items(), key=lambda item: item[0].lower()))


def percent(x, decimals, sign=""):
    value = round(100 * x, decimals) + 0.0  # no -0
    return f"{value:{sign}.{decimals}f}%"


def source_table(kind, results):
    """Rows of text: the header first. The last line is the mean of the sources."""
    head = ["source", "measured as", "n", "mean", "median", "bias", "largest", "refused"]
    table = [head if kind is MEMORY else head[:1] + head[2:]]
    means = []
    for source, members in by_source(results).items():
        errors = configurations(members)
        sizes = [abs(e) for e in errors]
        means.append(fmean(sizes))
        cells = [source]
        if kind is MEMORY:
            cells.append(", ".join(sorted({m.row["measured"].get("kind", "not stated") for m in members})))
        cells.append(str(len(errors)))
        cells += [percent(x, kind.decimals) for x in (means[-1], median(sizes))]
        cells += [percent(fmean(errors), kind.decimals, "+"), percent(max(sizes), kind.decimals)]
        table.append(cells + [str(sum(m.predicted is None for m in members))])
    mean = ["mean of the sources"] + [""] * (len(table[0]) - 1)
    mean[table[0].index("mean")] = percent(fmean(means), kind.decimals)
    return table + [mean]


def goal_table(kind, results):
    table, missed = [["goal", "n", "at most", "is", ""]], []
    with open(os.path.join(EVIDENCE, "goals.json"), encoding="utf-8") as file:
        goals = json.load(file)[kind.name]
    for goal in goals:
        errors = configurations([r for r in results if re.search(goal["match"], r.row["id"])])
        mean = fmean(abs(e) for e in errors) if errors else 1.0
        met = 100 * mean <= goal["goal"]
        if not met:
            missed.append(goal["name"])
        verdict = "met" if met else "not met"
        table.append([goal["name"], str(len(errors)), f"{goal['goal']:g}%", percent(mean, 2), verdict])
    return table, missed


def coverage_table(kind, results):
    """How often the measured value lies in the stated band: of times by the band's class, of memory by source."""
    table = [["band" if kind is TIME else "source", "n", "below", "inside", "above"]]
    classes = defaultdict(list)
    for r in results:
        if r.band and r.predicted:
            low, high = r.band
            width = f"{r.band_class.replace('_', ' ')}, +-{round(100 * (high - low) / 2 / r.predicted)}%"
            classes[width if kind is TIME else r.row["group"]].append((r.measured > high) - (r.measured < low))
    order = sorted(classes, key=lambda name: (len(name), name) if kind is TIME else name.lower())
    for name, sides in [(name, classes[name]) for name in order] + [("all", sum(classes.values(), []))]:
        shares = [percent(fmean(side == s for s in sides), 0) if sides else "-" for side in (-1, 0, 1)]
        table.append([name, str(len(sides)), *shares])
    return table


# What the fit of the constants says about itself


def read_fit():
    """docs/validation_timing.json, and whether the constants are still those that it was written with."""
    with open(os.path.join(ROOT, "docs", "validation_timing.json"), encoding="utf-8") as file:
        fit = json.load(file)
    with open(os.path.join(ROOT, "configs", "timing", "constants.json"), "rb") as file:
        current = hashlib.sha256(file.read()).hexdigest()[:16] == fit["constants"]
    return fit, current


def left_out_table(fit):
    table = [["source", "fitted", "left out", "ratio"]]
    fitted = fit["without"][0]["errors"]
    for source, error in sorted(fit["left_out"].items()):
        table.append([source, f"{fitted[source]:.1f}%", f"{error:.1f}%", f"{error / fitted[source]:.2f}"])
    means = [fmean(fitted.values()), fmean(fit["left_out"].values())]
    return table + [["mean of the sources", f"{means[0]:.1f}%", f"{means[1]:.1f}%", f"{means[1] / means[0]:.2f}"]]


def ablation_table(fit):
    sources = sorted(fit["without"][0]["errors"])
    table = [["without", *sources, "mean"]]
    for row in fit["without"]:
        errors = [row["errors"][source] for source in sources]
        table.append([row["without"], *[f"{e:.1f}" for e in errors], f"{fmean(errors):.1f}"])
    return table


FIT_TEXT = """The step time has {count} constants that were fitted to these rows: rates of GPUs, efficiencies of fabrics,
host times and kernels of stacks. [configs/timing/constants.json](../configs/timing/constants.json) lists each with its
unit, bounds, prior and rows; `scripts/fit_timing.sh` fits them again. "left out" is the error of a source with constants
that were fitted, from the priors, to all the others: what to expect of a new source on a known stack."""

ABLATION_TEXT = """The error (percent) of every source with one term taken out of the model, or put back to what a simpler
model has; nothing is fitted again:"""


def fit_section():
    fit, _ = read_fit()
    with open(os.path.join(ROOT, "configs", "timing", "constants.json"), encoding="utf-8") as file:
        count = len(json.load(file)["constants"])
    sources = tuple(fit["without"][0]["errors"]) + ("mean", "fitted", "left out", "ratio")
    parts = ["### Fitted constants and sources left out", FIT_TEXT.format(count=count)]
    parts.append(markdown(left_out_table(fit), sources))
    parts += ["### What each term is worth", ABLATION_TEXT, markdown(ablation_table(fit), sources)]
    return parts


# Where published layouts stand among all


def read_search():
    """What scripts/rediscover.py --json docs/validation_search.json found."""
    with open(os.path.join(ROOT, "docs", "validation_search.json"), encoding="utf-8") as file:
        return json.load(file)


def last_word(layout):
    return layout.split()[-1]  # the recomputation


def search_reason(row):
    published, best = last_word(row["published"]), last_word(row["best"])
    if not row["fits"]:
        return "predicted not to fit as the row states it: recipes store fp8 weights and 16-bit gradients that rows leave out"
    if row["source"] in ("bigscience-tr11", "megatron-2020", "vtrain", "bigscience-1b3-v100"):
        if published == "full":
            return "experiments of 2020 to 2022 that recomputed everything, as their scripts did by default; by bytes most need none"
        return "an experiment that varied one thing, here the microbatch"
    if published == "selective" and best == "none":
        return "recomputes the attention core (a recipe's or paper's subject); by bytes nothing has to be, with more pipeline or tensor ranks"
    if published in ("full", "ops") and best == "none":
        return "recomputes to be sure to fit: microbatches or shards exist at which nothing has to be, within a few GiB of the card"
    return "same recomputation, other degrees or microbatch: published tables keep one layout over many sizes"


def search_section():
    rows = read_search()
    sources = defaultdict(list)
    for row in rows:
        sources[row["source"]].append(max(row["gap"], 0.0))
    table = [["source", "n", "median gap", "within 5%"]]
    for source, gaps in sorted(sources.items()):
        table.append([source, str(len(gaps)), percent(median(gaps), 1), str(sum(g <= 0.05 for g in gaps))])
    everything = [max(row["gap"], 0.0) for row in rows]
    table.append(["all", str(len(rows)), percent(median(everything), 1), str(sum(g <= 0.05 for g in everything))])
    causes = defaultdict(list)
    for row in rows:
        if row["gap"] > 0.05:
            causes[search_reason(row)].append(row)
    why = [["runs", "median gap", "largest", "for example", "why"]]
    for reason, members in sorted(causes.items(), key=lambda item: (-len(item[1]), item[0])):
        most = max(members, key=lambda r: (r["gap"], r["id"]))
        gaps = [r["gap"] for r in members]
        example = f"{most['id']}: {most['published']}, best {most['best']}"
        why.append([str(len(members)), percent(median(gaps), 1), percent(most["gap"], 1), example, reason])
    parts = ["## What experts run", SEARCH_TEXT, markdown(table, ("n", "median gap", "within 5%"))]
    parts += ["Gaps of more than 5%, by cause:", markdown(why, ("runs", "median gap", "largest"))]
    return "\n\n".join(parts) + "\n"


SEARCH_TEXT = """`shardplan search` over what the software of each source could do, against the layout that the source published
(`scripts/rediscover.py`, which prints every run with its rank). Of runs that differ in their layout alone the fastest as
measured counts. gap: by how much the published layout is predicted to be slower than the best one. A gap is not the
program's error: step times are off by a few percent where both layouts were measured (above), and an expert's choice
also leaves room for what bytes do not say, such as fragmentation and sequences of uneven length."""


# Reasons


def read_reasons(kind):
    with open(os.path.join(ROOT, "docs", "validation_reasons.json"), encoding="utf-8") as file:
        return json.load(file)[kind.name]


def reason_of(reasons, result):
    """The first entry that matches what the row is and the sign of its error."""
    sign, row = "+" if result.error > 0 else "-", result.row
    run = row["run"]
    offload = "offload" if run["training"].get("offload") else ""
    what = [row["id"], str(run["model"].get("name")), run["cluster"]["gpu"], run["training"]["precision"], offload]
    subject = " ".join(what)
    for entry in reasons:
        if re.search(entry["match"], subject) and entry.get("sign", sign) == sign:
            return entry["reason"]
    return "not explained yet"


def worst_first(kind, results):
    return sorted(results, key=lambda r: (-round(abs(r.error), 6), r.row["id"]))


def worst_table(kind, results, reasons):
    table = [["row", f"measured {kind.quantity}", f"predicted {kind.quantity}", "error", "why"]]
    shown = {}  # of a configuration that was measured several times its worst row
    for r in worst_first(kind, results):
        shown.setdefault(r.row.get("dup_group") or r.row["id"], r)
    for r in list(shown.values())[:WORST]:
        guess = "refused" if r.predicted is None else f"{r.predicted / kind.scale:.4g}"
        why = f"refused: {r.refusal}" if r.predicted is None else reason_of(reasons, r)
        table.append([r.row["id"], f"{r.measured / kind.scale:.4g}", guess, percent(r.error, 1, "+"), why])
    return table


def cause_table(kind, results, reasons):
    """Every row that is off by more than kind.explained, by reason."""
    causes = defaultdict(list)
    for r in results:
        if abs(r.error) > kind.explained and r.predicted is not None:
            causes[reason_of(reasons, r)].append(r)
    table = [["rows", "mean error", "largest", "for example", "why"]]
    order = sorted(causes.items(), key=lambda item: (-round(sum(abs(r.error) for r in item[1]), 6), item[0]))
    for why, members in order:
        first = worst_first(kind, members)[0]
        mean = fmean(r.error for r in members)
        table.append([str(len(members)), percent(mean, 1, "+"), percent(first.error, 1, "+"), first.row["id"], why])
    return table


def flagged_table(kind, flagged):
    table = [["row", "error", "why it is not counted"]]
    for r in sorted(flagged, key=lambda r: r.row["id"]):
        table.append([r.row["id"], percent(r.error, 1, "+"), r.row["flagged"]])
    return table


# Output


def markdown(table, right=()):
    head, *body = table
    rule = ["---:" if name in right else "---" for name in head]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [head, rule] + body)


def plain(table):
    widths = [max(len(cells[i]) for cells in table) for i in range(len(table[0]))]
    lines = []
    for first, *others in table:
        cells = [first.ljust(widths[0])] + [cell.rjust(width) for cell, width in zip(others, widths[1:])]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


NUMBERS = ("n", "mean", "median", "bias", "largest", "refused", "at most", "is", "below", "inside", "above", "error")
NUMBERS += ("rows", "mean error")
NUMBERS += tuple(f"{word} {kind.quantity}" for word in ("measured", "predicted") for kind in (MEMORY, TIME))

INTRODUCTION = """# Validation: measured runs against predictions

This page is generated: `scripts/validation.py --bin build/release/shardplan` writes it, `--check` compares it with what
the program says now (a test does), `--figures --rows` prints every row. The measured runs are in
[tests/evidence](../tests/evidence/README.md), each with its source.

Each run is described to the program as its source describes it, with nothing else, and predicted once. An error is
predicted / measured - 1. The tables count

- a configuration that a source measured several times once, with its mean error;
- a run that the program refuses as 100% off;
- flagged runs apart, at the end of each section: what was measured contradicts itself or is not what it says.

mean and median are of the error's size, bias is the mean with its sign, largest is the worst row. Sources count
equally in "mean of the sources", however many rows they have. Most constants of the estimate were chosen with these
rows in view, so expect more on a stack, fabric or model family that is not here: 10 to 25% of a step's time.
"""

MEMORY_TEXT = """`max_allocated` is compared with the stage's total less what lies outside the framework's allocator,
`max_reserved` with `reserved_bytes`. Where the source names a pipeline stage, that stage is compared, else the
fullest."""

TIME_TEXT = "Seconds of one optimizer step; where a source prints tokens/s instead, the tokens of a step over that."

BANDS = {
    "memory": "`reserved_band_bytes` against what was reserved; below: less was measured than the band spans.",
    "time": "`step_band_s` is meant to hold 80% of the runs; by `step_band_class` and half width. below: faster than the band spans.",
}


def fits_line(results):
    """Every run here has run, so a verdict that it does not fit is wrong."""
    answered = [r for r in results if r.predicted is not None]
    wrong = [r for r in answered if not r.fits]
    if not wrong:
        return f"Every one of these runs ran; the verdict is FITS for all {len(answered)}."
    sources = ", ".join(f"{len(members)} of {source}" for source, members in by_source(wrong).items())
    names = ": " + ", ".join(sorted(r.row["id"] for r in wrong)) if len(wrong) <= WORST else ""
    return (
        "Every one of these runs ran. The verdict is DOES NOT FIT, wrongly, "
        f"for {len(wrong)} of {len(answered)} ({sources}){names}."
    )


def section(kind, results):
    scored = [r for r in results if "flagged" not in r.row]
    flagged = [r for r in results if "flagged" in r.row]
    reasons = read_reasons(kind)
    goals, missed = goal_table(kind, scored)
    parts = [f"## {kind.heading}", MEMORY_TEXT if kind is MEMORY else TIME_TEXT]
    parts.append(f"![{kind.heading}: measured against predicted](images/validation_{kind.name}.svg)")
    parts.append(markdown(source_table(kind, scored), NUMBERS))
    parts.append(f"### Goals of {kind.heading.lower()}")
    total = len(goals) - 1
    words = f"Met: {total - len(missed)} of {total}." + (f" Not met: {', '.join(missed)}." if missed else "")
    parts += [words, markdown(goals, NUMBERS)]
    parts += [f"### Verdicts and bands of {kind.heading.lower()}", fits_line(scored), BANDS[kind.name]]
    parts.append(markdown(coverage_table(kind, scored), NUMBERS))
    if kind is TIME:
        parts += fit_section()
    parts += [f"### The worst rows of {kind.heading.lower()}", markdown(worst_table(kind, scored, reasons), NUMBERS)]
    parts.append(f"All rows that are more than {percent(kind.explained, 0)} off, by cause:")
    parts.append(markdown(cause_table(kind, scored, reasons), NUMBERS))
    if flagged:
        mean = percent(fmean(abs(r.error) for r in flagged), 1)
        parts += [f"### Flagged rows of {kind.heading.lower()}", f"Mean {mean}, in no table above."]
        parts.append(markdown(flagged_table(kind, flagged), NUMBERS))
    return "\n\n".join(parts) + "\n"


def plot(kind, results):
    groups = {}
    for source, members in by_source([r for r in results if "flagged" not in r.row]).items():
        points = [(r.measured / kind.scale, r.predicted / kind.scale) for r in members if r.predicted is not None]
        if points:
            groups[source] = points
    return scatter(f"{kind.heading}: measured against predicted", kind.quantity, groups, kind.limit)


def figures(kind, results, rows):
    scored = [r for r in results if "flagged" not in r.row]
    print(f"{kind.heading}\n\n{plain(source_table(kind, scored))}\n")
    goals, missed = goal_table(kind, scored)
    print(f"{plain(goals)}\ngoals missed: {len(missed)}\n")
    print(f"{plain(coverage_table(kind, scored))}\n")
    print(f"{fits_line(scored)}\n")
    if rows:
        for r in worst_first(kind, scored):
            guess = "refused" if r.predicted is None else f"{r.predicted / kind.scale:.5g}"
            error, measured = percent(r.error, 1, "+"), f"{r.measured / kind.scale:.5g}"
            print(f"{error:>8s}  {r.row['id']}  measured {measured}  predicted {guess}")
        print()
    for r in scored:
        if r.predicted is None:
            print(f"refused {r.row['id']}: {r.refusal}", file=sys.stderr)


def stale(path, wanted):
    """Prints how the file differs; true where it does."""
    try:
        with open(path, encoding="utf-8", newline="") as file:
            have = file.read()
    except FileNotFoundError:
        have = ""
    if have == wanted:
        return False
    name = os.path.relpath(path, ROOT)
    print(f"{name} is not what the program says now; scripts/validation.py writes it anew.")
    lines = list(difflib.unified_diff(have.splitlines(), wanted.splitlines(), name, "now", lineterm="", n=0))
    for shown in lines[:40]:
        print("  " + shown[:200])
    if len(lines) > 40:
        print(f"  ... {len(lines) - 40} lines more")
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=os.path.join(ROOT, "build", "release", "shardplan"), metavar="PROGRAM")
    parser.add_argument("--jobs", "-j", type=int, default=os.cpu_count() or 1, metavar="N")
    parser.add_argument("--check", action="store_true", help="exit 1 where page or plots are out of date")
    parser.add_argument("--figures", action="store_true", help="print the figures, write nothing")
    parser.add_argument("--rows", action="store_true", help="with --figures: every row, worst first")
    options = parser.parse_args()
    if not os.access(options.bin, os.X_OK):
        print(f"{options.bin} is not built (scripts/run.sh), or name it with --bin", file=sys.stderr)
        return 2
    results = {kind.name: run_all(kind, options.bin, max(1, options.jobs)) for kind in (MEMORY, TIME)}
    if options.figures:
        for kind in (MEMORY, TIME):
            figures(kind, results[kind.name], options.rows)
        return 0
    wanted = {os.path.join(ROOT, "docs", "validation.md"): INTRODUCTION}
    for kind in (MEMORY, TIME):
        wanted[os.path.join(ROOT, "docs", "validation.md")] += "\n" + section(kind, results[kind.name])
        wanted[os.path.join(ROOT, "docs", "images", f"validation_{kind.name}.svg")] = plot(kind, results[kind.name])
    wanted[os.path.join(ROOT, "docs", "validation.md")] += "\n" + search_section()
    if options.check and not read_fit()[1]:
        print("docs/validation_timing.json is of other constants; scripts/fit_timing.sh --tables writes it anew.")
        return 1
    if options.check:
        return 1 if any([stale(path, content) for path, content in wanted.items()]) else 0
    for path, content in wanted.items():
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8", newline="\n") as file:
            file.write(content)
        print(f"wrote {os.path.relpath(path, ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
