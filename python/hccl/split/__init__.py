"""How gradients are cut into segments: hccl.split.api."""
