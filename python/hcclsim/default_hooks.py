"""Gradients in 16 bits: the module torch.distributed.algorithms.ddp_comm_hooks.default_hooks, by its names."""

from __future__ import annotations


def fp16_compress_hook(state: object = None) -> str:
    """Gradients are sent in fp16."""
    return "fp16"


def bf16_compress_hook(state: object = None) -> str:
    """Gradients are sent in bf16."""
    return "bf16"
