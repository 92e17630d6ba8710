#!/usr/bin/env python3
"""Forward and backward pass of ResNet50 with all gradients by PyTorch, as bench_replica_step does it for one replica.

usage: pytorch_resnet50.py PIXELS BATCH THREADS STEPS

Prints one JSON object with the smallest and the median time of a step, after one that warms up. Needs Debian's
python3-torch with libopenblas0-pthread: with the reference BLAS it is ten times slower on one thread, which would be
no comparison.
"""

import json
import os
import statistics
import sys
import time

BLOCKS = ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2))  # width, number, stride of the first


def main():
    pixels, batch, threads, steps = map(int, sys.argv[1:])
    # OpenBLAS has threads of its own and reads their number when it is loaded.
    os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = str(threads)
    try:
        import torch
        from torch import nn
    except ImportError:
        sys.exit("PyTorch is missing: install python3-torch and libopenblas0-pthread, and use Debian's python3")
    torch.set_num_threads(threads)

    class Bottleneck(nn.Module):
        def __init__(self, channels, width, stride):
            super().__init__()
            out = width * 4
            self.main = nn.Sequential(
                nn.Conv2d(channels, width, 1, bias=False),
                nn.BatchNorm2d(width),
                nn.ReLU(inplace=True),
                nn.Conv2d(width, width, 3, stride, 1, bias=False),
                nn.BatchNorm2d(width),
                nn.ReLU(inplace=True),
                nn.Conv2d(width, out, 1, bias=False),
                nn.BatchNorm2d(out),
            )
            self.shortcut = nn.Sequential()
            if stride != 1 or channels != out:
                self.shortcut = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))
            self.relu = nn.ReLU(inplace=True)

        def forward(self, x):
            return self.relu(self.main(x) + self.shortcut(x))

    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    channels = 64
    for width, blocks, stride in BLOCKS:
        for block in range(blocks):
            layers.append(Bottleneck(channels, width, stride if block == 0 else 1))
            channels = width * 4
    network = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 1000))

    images = torch.randn(batch, 3, pixels, pixels)
    labels = torch.arange(batch)
    walls = []
    for _ in range(steps + 1):
        start = time.perf_counter()
        network.zero_grad(set_to_none=False)
        nn.functional.cross_entropy(network(images), labels).backward()
        walls.append(time.perf_counter() - start)
    print(json.dumps({"min_s": min(walls[1:]), "median_s": statistics.median(walls[1:])}))


if __name__ == "__main__":
    main()
