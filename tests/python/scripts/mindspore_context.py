import mindspore as ms
from mindspore import set_auto_parallel_context

set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True, device_num=4)
set_auto_parallel_context(all_reduce_fusion_config=[3, 9])
