"""scripts/measure_gpu.py: logs of nccl-tests become points that `estimate` takes; wrong use is refused."""
import json
import os
import subprocess
import sys
import tempfile

root, program = sys.argv[1:3]
script = os.path.join(root, "scripts", "measure_gpu.py")
log = os.path.join(root, "tests", "validation", "all_reduce_perf.log")


def run(*arguments):
    return subprocess.run([sys.executable, script, *arguments], capture_output=True, text=True)


def step_s(cluster):
    run_file = {"model": "llama-3.1-8b", "cluster": cluster, "num_gpus": 8, "parallel": {"tensor": 8, "sequence_parallel": False}}
    done = subprocess.run([program, "estimate", "-", "--json"], input=json.dumps(run_file), capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)["time"]["step_s"]


with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "cluster.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"gpu": "h100"}, file)
    done = run("--nccl-tests", f"all_reduce={log}", "--ranks", "8", "--into", path)
    assert done.returncode == 0, done.stderr
    with open(path, encoding="utf-8") as file:
        cluster = json.load(file)
    points = cluster["efficiency"]["collectives"]
    assert [p["message_bytes"] for p in points] == [8388608, 33554432, 134217728], points
    assert [p["seconds"] for p in points] == [7.568e-05, 0.0001901, 0.0006005], points
    assert {(p["op"], p["group_size"]) for p in points} == {("all_reduce", 8)}, points
    for point in points:
        point["seconds"] *= 2
    assert step_s(cluster) > step_s({"gpu": "h100"}), "slower collectives make a longer step"

for arguments, word in (
    (("--nccl-tests", f"all_reduce={log}"), "--ranks"),
    (("--nccl-tests", f"gather={log}", "--ranks", "8"), "OPERATION"),
    (("--nccl-tests", f"all_reduce={script}", "--ranks", "8"), "no rows"),
    (("--nccl-tests", "all_reduce=no/such/folder/all_reduce.log", "--ranks", "8"), "No such file"),
):
    done = run(*arguments)
    assert done.returncode != 0 and word in done.stderr, (arguments, done.stderr)
