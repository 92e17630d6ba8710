#!/usr/bin/env python3
"""One replica's forward and backward pass of ResNet50: ours against PyTorch's, on the same threads in the same run.

PyTorch computes one replica with T threads; we compute T replicas at a time, each with one. So our time per replica is
that of a step of T workers divided by T. Prints a table; the ratio is PyTorch's time over ours, more than 1 where ours
is less. Rounds of both take turns, and the smallest time of each counts.

usage: pytorch_resnet50.py BENCH_REPLICA_STEP [PIXELS:BATCH:THREADS…]

Exit status 1 if PyTorch is faster anywhere. Needs Debian's python3-torch with libopenblas0-pthread (with the reference
BLAS PyTorch is ten times slower on one thread, which would be no comparison).
"""

import json
import subprocess
import sys
import time

import torch
from torch import nn

ROUNDS = 3
CASES = ["64:2:1", "64:2:2", "64:2:4", "224:2:1", "224:2:2", "224:2:4"]


class Bottleneck(nn.Module):
    def __init__(self, channels, width, stride):
        super().__init__()
        out = width * 4
        self.main = nn.Sequential(
            nn.Conv2d(channels, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
            nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
            nn.Conv2d(width, out, 1, bias=False), nn.BatchNorm2d(out))  # fmt: skip
        self.shortcut = nn.Sequential()
        if stride != 1 or channels != out:
            self.shortcut = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        return self.relu(self.main(x) + self.shortcut(x))


def resnet50():
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    channels = 64
    for width, blocks, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for block in range(blocks):
            layers.append(Bottleneck(channels, width, stride if block == 0 else 1))
            channels = width * 4
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 1000))


def torch_step_s(network, pixels, batch, steps):
    """Smallest time of a step with all gradients, after one that warms up."""
    images = torch.randn(batch, 3, pixels, pixels)
    labels = torch.arange(batch)
    walls = []
    for _ in range(steps + 1):
        start = time.perf_counter()
        network.zero_grad(set_to_none=False)
        nn.functional.cross_entropy(network(images), labels).backward()
        walls.append(time.perf_counter() - start)
    return min(walls[1:])


def our_step_s(program, pixels, batch, threads, steps):
    command = [program, "resnet50", str(pixels), str(batch), str(threads), str(steps)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)["min_s"] / threads


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    network = resnet50()
    slower = False
    print(f"{'pixels':>6} {'batch':>5} {'threads':>7} {'PyTorch':>10} {'ours':>10} {'ratio':>6}")
    for case in sys.argv[2:] or CASES:
        pixels, batch, threads = map(int, case.split(":"))
        torch.set_num_threads(threads)
        steps = 10 if pixels < 128 else 3
        theirs, ours = [], []
        for _ in range(ROUNDS):
            theirs.append(torch_step_s(network, pixels, batch, steps))
            ours.append(our_step_s(sys.argv[1], pixels, batch, threads, steps))
        ratio = min(theirs) / min(ours)
        slower = slower or ratio < 1
        print(
            f"{pixels:>6} {batch:>5} {threads:>7} {min(theirs) * 1e3:>7.1f} ms {min(ours) * 1e3:>7.1f} ms {ratio:>6.2f}",
            flush=True,
        )
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
