import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import PowerSGDState, batched_powerSGD_hook

state = PowerSGDState(process_group=dist.group.WORLD, matrix_approximation_rank=2, start_powerSGD_iter=2)
ddp_model.register_comm_hook(state, batched_powerSGD_hook)
