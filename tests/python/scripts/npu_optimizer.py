# The settings of a TensorFlow script for Ascend: iteration trace, hcom_parallel, a split by size.
import tensorflow as tf
from npu_bridge.npu_init import *
from hccl.split.api import set_split_strategy_by_size

npu_init = npu_ops.initialize_system()
npu_shutdown = npu_ops.shutdown_system()
config = tf.ConfigProto()
custom_op = config.graph_options.rewrite_options.custom_optimizers.add()
custom_op.name = "NpuOptimizer"
custom_op.parameter_map["use_off_line"].b = True
custom_op.parameter_map["profiling_mode"].b = True
custom_op.parameter_map["profiling_options"].s = tf.compat.as_bytes(
    '{"output":"OUTPUT","task_trace":"on","training_trace":"on","fp_point":"","bp_point":""}'
)
custom_op.parameter_map["hcom_parallel"].b = True
config.graph_options.rewrite_options.remapping = RewriterConfig.OFF
config.graph_options.rewrite_options.memory_optimization = RewriterConfig.OFF
with tf.Session(config=config) as sess:
    sess.run(npu_init)
    set_split_strategy_by_size([80, 20])
    sess.run(npu_shutdown)
