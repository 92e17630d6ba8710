#!/usr/bin/env python3
"""One replica's step of ResNet50: our time against PyTorch's on as many threads, in the same run.

PyTorch computes one replica with T threads; we compute T replicas at a time, each with one. Our time per replica is
that of a step of T workers divided by T. Rounds of both take turns, and the smallest time of each counts.

usage: compare_pytorch.py BENCH_REPLICA_STEP [PIXELS:BATCH:THREADS…]

Prints one JSON line per case for bench/run: our time per replica, and the ratio, PyTorch's time over ours.
"""

import json
import subprocess
import sys
from pathlib import Path

TORCH = ["/usr/bin/python3", str(Path(__file__).resolve().parent / "pytorch_resnet50.py")]
CASES = ["64:2:1", "64:2:2", "64:2:4", "224:2:1", "224:2:2", "224:2:4"]
ROUNDS = 3


def smallest_s(command):
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)["min_s"]


def compare(program, case):
    pixels, batch, threads = case.split(":")
    sizes = [pixels, batch, threads, "10" if int(pixels) < 128 else "3"]
    theirs, ours = [], []
    for _ in range(ROUNDS):
        theirs.append(smallest_s(TORCH + sizes))
        ours.append(smallest_s([program, "resnet50"] + sizes) / int(threads))
    return {
        "name": f"ResNet50 {pixels}x{pixels} batch {batch}, per replica, {threads} threads",
        "runs": ROUNDS,
        "wall_min_s": round(min(ours), 5),
        "pytorch_s": round(min(theirs), 5),
        "ratio": round(min(theirs) / min(ours), 3),
        "bar_ratio": 1.0,
    }


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    for case in sys.argv[2:] or CASES:
        try:
            print(json.dumps(compare(sys.argv[1], case)), flush=True)
        except subprocess.CalledProcessError as error:
            sys.exit(f"{' '.join(error.cmd)} fails")


if __name__ == "__main__":
    main()
