#!/usr/bin/env bash
set -e
# GPT-3 175B: 8 ranks per operator, 16 stages of two parts each.
GPUS=8
NODES=16
DISTRIBUTED_ARGS=(
    --nproc_per_node $GPUS
    --nnodes $NODES   # 128 ranks
)
if [ -n "$RUN_NAME" ]; then
  LOG_DIR=logs/$RUN_NAME
else
  LOG_DIR=logs/unnamed
fi

LAYERS=96
GPT_MODEL_ARGS=(
    --num-layers $LAYERS
    --hidden-size 12288
    --num-attention-heads 96
    --seq-length 2048
    --max-position-embeddings 2048
    --tokenizer-type GPT2BPETokenizer
)
MODEL_PARALLEL_ARGS=(
    --tensor-model-parallel-size 8
    --pipeline-model-parallel-size 16
    --num-layers-per-virtual-pipeline-stage $((LAYERS / (16 * 2)))
    --sequence-parallel
)
TRAINING_ARGS=(
    --micro-batch-size 1
    --global-batch-size 64
    --rampup-batch-size 16 16 5859375
    --train-iters 500000
    --weight-decay 0.1
    --lr 6.0e-5
    --fp16
    --recompute-granularity full --recompute-method uniform --recompute-num-layers 1
)
cat <<EOF
Training with ${GPUS} NPUs per node; not an argument: --num-layers 1
EOF
torchrun "${DISTRIBUTED_ARGS[@]}" pretrain_gpt.py \
    "${GPT_MODEL_ARGS[@]}" \
    "${MODEL_PARALLEL_ARGS[@]}" \
    "${TRAINING_ARGS[@]}" \
    --data-path "$1" \
    --tensorboard-dir "$LOG_DIR"
