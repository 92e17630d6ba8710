#include "study/files/foreign/megatron/names.hpp"

#include <fmt/format.h>

#include <functional>
#include <set>
#include <vector>

#include "base/suggest.hpp"
#include "base/text.hpp"

namespace hcclsim::study {
namespace {

constexpr std::string_view without_effect = R"(
adam-beta1 adam-beta2 adam-eps adlr-autoresume adlr-autoresume-interval ai-framework app-tag-run-name
app-tag-run-version apply-layernorm-1p apply-query-key-layer-scaling async-save attention-per-layer-logging
attention-softmax-in-fp32 auto-detect-ckpt-format auto-tune auto-tune-resume barrier-with-L1-time bert-load
bias-dropout-fusion bias-gelu-fusion bias-swiglu-fusion check-for-large-grads check-for-nan-in-loss-and-grad
check-for-spiky-loss check-weight-hash-across-dp-replicas-interval ckpt-assume-constant-structure ckpt-convert-format
ckpt-convert-save ckpt-convert-update-legacy-dist-opt-format ckpt-format ckpt-fully-parallel-load
ckpt-fully-parallel-save ckpt-step config-logger-dir cross-entropy-fusion-impl cross-entropy-loss-fusion
data-args-path data-cache-path data-parallel-random-init data-path data-seed dataloader-save dataloader-type
decoupled-lr decoupled-min-lr deterministic-mode disable-gloo-group disable-gloo-process-groups
disable-straggler-on-startup dist-ckpt-format dist-ckpt-save-pre-mcore-014 dist-ckpt-strictness distributed-backend
distributed-timeout-minutes distributed-timeout-seconds-after-init empty-unused-memory-level enable-ft-package
enable-gloo-process-groups enable-hf2mg-convert enable-one-logger end-weight-decay eod-mask-loss error-injection-rate
error-injection-type eval-interval eval-iters exit-duration-in-mins exit-interval exit-on-missing-checkpoint
exit-signal-handler exit-signal-handler-for-dataloader finetune handler-name hf-cfg-dir high-priority-stream-groups
hysteresis inference-rng-tracker init-method-std init-method-xavier-uniform init-model-with-meta-device
initial-loss-scale jit-compile kill-switch-file layernorm-epsilon legacy-tokenizer load load-checkpoint-loosely
load-distrib-optimizer-method local-rank local_rank log-batch-size-to-tensorboard log-device-memory-used log-energy
log-interval log-learning-rate-to-tensorboard log-loss-scale-to-tensorboard log-max-attention-logit
log-memory-to-tensorboard log-num-zeros-in-grad log-params-norm log-progress log-straggler log-throughput
log-timers-to-tensorboard log-validation-ppl-to-tensorboard log-world-size-to-tensorboard logging-level
loss-scale-window lr lr-decay-iters lr-decay-samples lr-decay-style lr-warmup-fraction lr-warmup-init lr-warmup-iters
lr-warmup-samples lr-wsd-decay-iters lr-wsd-decay-samples lr-wsd-decay-style make-vocab-size-divisible-by manual-gc
manual-gc-interval mask-factor mask-prob mask-type master-addr master-port memory-snapshot-path merge-file
mid-level-dataset-surplus min-loss-scale min-lr mmap-bin-files mock-data model-type-hf moe-aux-loss-coeff
moe-comm-aux-loss-coeff moe-device-level-aux-loss-coeff moe-grouped-gemm moe-per-layer-logging moe-permute-fusion
moe-router-bias-update-rate moe-router-dtype moe-router-enable-expert-bias moe-router-fp32
moe-router-load-balancing-type moe-router-pre-softmax moe-router-score-function moe-token-distribution-logging
moe-token-distribution-logging-interval moe-token-drop-policy moe-upcycling-granularity moe-use-upcycling
moe-z-loss-coeff nccl-communicator-config-path nccl-ub no-async-tensor-model-parallel-allreduce
no-barrier-with-level-1-timing no-bias-dropout-fusion no-bias-gelu-fusion no-bias-swiglu-fusion
no-check-for-nan-in-loss-and-grad no-ckpt-fully-parallel-save no-contiguous-buffers-in-local-ddp
no-create-attention-mask-in-dataloader no-cross-entropy-loss-fusion no-initialization no-load-optim no-load-rng
no-load-strict no-log-learnig-rate-to-tensorboard no-log-learning-rate-to-tensorboard no-log-loss-scale-to-tensorboard
no-manual-gc-eval no-masked-softmax-fusion no-mmap-bin-files no-one-logger no-overlap-p2p-communication
no-persist-layer-norm no-query-key-layer-scaling no-rope-fusion no-save-optim no-save-rng no-shared-storage no-shuffle
no-te-rng-tracker no-weight-decay-cond-type non-persistent-ckpt-type non-persistent-global-ckpt-dir
non-persistent-local-ckpt-algo non-persistent-local-ckpt-dir non-persistent-save-interval norm-epsilon norm-topk-prob
num-dataset-builder-threads num-workers object-storage-cache-path one-logger-async one-logger-project
one-logger-run-name overlap-p2p-communication overlap-p2p-communication-warmup-flush override-opt-param-scheduler
override-opt_param-scheduler pad-to-multiple-of per-split-data-args-path persistent-save-interval
pretrained-checkpoint profile profile-data-simplification profile-export-type profile-level profile-ranks
profile-record-shapes profile-save-path profile-step-end profile-step-start profile-type profile-with-cpu
profile-with-memory profile-with-stack rank record-memory-history renormalize-blend-weights replication
replication-factor replication-jump rerun-mode
result-rejected-tracker-filename rope-scaling-beta-fast rope-scaling-beta-slow rope-scaling-factor rope-scaling-mscale
rope-scaling-mscale-all-dim rope-scaling-original-max-position-embeddings rope-scaling-type rotary-base
rotary-interleaved rotary-percent rotary-scaling-factor rotary-seq-len-interpolation-factor routed-scaling-factor
run-workload-inspector-server s3-cache-path sample-rate save save-distrib-optimizer-method save-interval
save-retain-interval seed seq-aux sgd-momentum shape-order short-seq-prob shuffle-each-epoch-separately skip-train
special-tokens split start-weight-decay straggler-ctrlr-port straggler-minmax-count te-rng-tracker tensorboard-dir
tensorboard-log-interval tensorboard-queue-size test-data-path test-mode tiktoken-num-special-tokens tiktoken-pattern
tiktoken-special-tokens timing-log-level timing-log-option tokenizer-kwargs tokenizer-model tokenizer-name-or-path
tokenizer-not-use-fast tokenizer-padding-side tokenizer-prompt-format tokenizer-type train-data-path train-iters
train-samples train-sync-interval transformer-impl trust-remote-code use-checkpoint-args
use-checkpoint-opt-param-scheduler use-checkpoint-opt_param-scheduler use-cpu-initialization use-dist-ckpt
use-distributed-attn use-fused-mlp use-fused-moe-token-permute-and-unpermute use-fused-ring-attention-update
use-fused-rmsnorm use-fused-rotary-pos-emb use-fused-sdpa use-fused-swiglu use-legacy-models use-mcore-models
use-mp-args-from-checkpoint-args use-one-sent-docs use-persistent-ckpt-worker use-pytorch-profiler use-rope-scaling
use-rotary-embeddings valid-data-path verify-checkpoint verify-checkpoint-model-type vocab-extra-ids vocab-file
wandb-entity wandb-exp-name wandb-group wandb-project wandb-save-dir weight-decay weight-decay-incr-style workers
)";

/// Those that the mapping reads, and those that no option of run stands for.
constexpr std::string_view with_effect = R"(
account-for-embedding-in-pipeline-split account-for-loss-in-pipeline-split accumulate-allreduce-grads-in-fp32
adaptive-recompute-device-size adaptive-recompute-device-swap add-bias-linear add-qkv-bias add-rmsnorm-offset
alibi-diagonal-opposite apply-norm-post-sub-block apply-residual-connection-post-layernorm attention-backend
attention-dropout attention-mask-type attention-z-loss-coeff bert-no-binary-head bf16 calculate-per-token-loss
checkpoint-activations clip-grad context-parallel-algo context-parallel-size cp-attention-mask-type cp-comm-type
cp-window-size cpu-offloading cpu-offloading-num-layers cross-attention cuda-graph-scope cuda-graph-warmup-steps
data-parallel-sharding-strategy ddp-average-in-collective ddp-bucket-size ddp-num-buckets
ddp-pad-buckets-for-high-nccl-busbw decoder-first-pipeline-num-layers decoder-last-pipeline-num-layers
decoder-num-layers decoder-seq-length decrease-batch-size-if-needed defer-embedding-wgrad-compute delay-grad-reduce
delay-param-gather delay-wgrad-compute disable-bias-linear disable-tp-comm-bulk-dgrad disable-tp-comm-bulk-wgrad
disable-tp-comm-overlap-ag disable-tp-comm-overlap-rs disable-tp-comm-split-ag disable-tp-comm-split-rs
distribute-saved-activations dualpipev-dw-detach embedding-multiplier-scale enable-cuda-graph enable-high-availability
enable-recompute-layers-per-pp-rank encoder-num-layers encoder-pipeline-model-parallel-size encoder-seq-length
encoder-tensor-model-parallel-size exp-avg-dtype exp-avg-sq-dtype expert-model-parallel-size
expert-tensor-parallel-size external-cuda-graph ffn-hidden-size fill-neg-inf first-k-dense-replace flash-decode fp16
fp16-lm-cross-entropy fp32-residual-connection fp8-amax-compute-algo fp8-amax-history-len fp8-e4m3 fp8-format
fp8-hybrid fp8-interval fp8-margin fp8-param-gather fp8-recipe geglu gelu-tanh global-batch-size grad-reduce-in-bf16
gradient-accumulation-fusion gradient-reduce-div-fusion group-query-attention hccl-group-buffer
hccl-group-buffer-adaptive heterogeneous-layers-config-encoded-json heterogeneous-layers-config-path hidden-dropout
hidden-size hierarchical-context-parallel-sizes high-freq-factor hybrid-attention-ratio hybrid-mlp-ratio
hybrid-override-pattern input-embeds-norm input-jitter input-layernorm-in-fp32 interleave-sliding-window
is-hybrid-model kv-channels kv-head-repeat-before-uly-alltoall kv-lora-rank lora-alpha lora-fusion lora-load lora-r
lora-target-modules loss-scale low-freq-factor main-grads-dtype main-params-dtype max-position-embeddings
max-tokens-to-oom megatron-fsdp-main-grads-dtype memory-fragmentation micro-batch-size micro-batch-sync-interval
microbatch-group-size-per-virtual-pipeline-stage mla-fa-without-pad mla-mm-split mla-up-proj-tp-overlap
mla-zero-memory moe-allgather-overlap-comm moe-alltoall-overlap-comm moe-bmm-mc2 moe-deepep-num-sms moe-enable-deepep
moe-expert-capacity-factor moe-extended-tp moe-fb-overlap moe-ffn-hidden-size moe-hierarchical-alltoallv
moe-input-jitter-eps moe-intermediate-size moe-layer-freq moe-layer-recompute moe-pad-expert-input-to-capacity
moe-permutation-async-comm moe-router-group-topk moe-router-num-groups moe-router-topk moe-router-topk-limited-devices
moe-router-topk-scaling-factor moe-shared-expert-intermediate-size moe-shared-expert-overlap moe-token-dispatcher-type
moe-tp-extend-ep moe-unperm2-mem-optim moe-zero-memory moe-zero-memory-num-layers mtp-loss-scaling-factor
mtp-mem-efficient-logits mtp-num-layers multi-head-latent-attention multi-latent-attention n-shared-experts
next-tockens no-align-grad-reduce no-align-param-gather no-clone-scatter-output-in-embedding
no-gradient-accumulation-fusion no-position-embedding no-post-layer-norm no-rope-freq
no-scatter-gather-tensors-in-pipeline noop-layers normalization num-attention-heads
num-distributed-optimizer-instances num-experts num-layer-list num-layers num-layers-at-end-in-bf16
num-layers-at-start-in-bf16 num-layers-per-virtual-pipeline-stage num-query-groups
num-virtual-stages-per-pipeline-rank offload-optimizer-states openai-gelu optimizer optimizer-cpu-offload
optimizer-offload-fraction optimizer-selection original-max-position-embeddings output-layer-slice-num
output-logit-softcapping output-multiplier-scale overlap-cpu-optimizer-d2h-h2d overlap-grad-reduce
overlap-moe-expert-parallel-comm overlap-param-gather overlap-param-gather-with-optimizer-step padded-base-length
padded-vocab-size params-dtype pipeline-model-parallel-layout pipeline-model-parallel-size
pipeline-model-parallel-split-rank position-embedding-type post-norm pp2vpp pre-tockens q-lora-rank qk-head-dim
qk-layernorm qk-nope-head-dim qk-pos-emb-head-dim qk-rope-head-dim query-pre-attn-scalar rampup-batch-size
recompute-activation-function recompute-activation-function-num-layers recompute-activations recompute-granularity
recompute-in-advance recompute-in-bubble recompute-method recompute-modules recompute-mtp-layer recompute-mtp-norm
recompute-norm recompute-norm-num-layers recompute-num-layers reduce-recompute-for-last-chunk
relative-attention-max-distance relative-attention-num-buckets reset-attention-mask reset-position-ids
reuse-fp32-param router-gating-in-fp32 scale-depth scale-emb schedules-method seq-length sequence-parallel
share-kvstates shared-expert-gate sliding-window sparse-mode spec square-alibi-mask squared-relu
standalone-embedding-stage swap-attention swap-modules swiglu tensor-model-parallel-size tp-2d
tp-comm-bootstrap-backend tp-comm-overlap tp-comm-overlap-cfg tp-comm-overlap-rs-dgrad tp-x tp-y ulysses-degree-in-cp
untie-embeddings-and-output-weights use-ascend-coc use-ascend-mc2 use-cp-send-recv-overlap use-custom-fsdp
use-distributed-optimizer use-ema use-flash-attn use-fused-sdpa-with-recompute use-fusion-attn-v2 use-glm-rope use-mc2
use-megatron-fsdp use-nanopipe use-nd-matmul use-precision-aware-optimizer use-ring-exchange-p2p
use-rotary-position-embeddings use-torch-fsdp2 use-tp-pp-dp-mapping use-unpad v-head-dim vocab-size
wgrad-deferral-limit window-size yaml-cfg
)";

using Names = std::set<std::string, std::less<>>;

Names names_in(std::string_view list) {
  Names names;
  for (const std::string_view line : split(list, '\n')) {
    for (const std::string_view name : split(line, ' ')) {
      if (!name.empty()) names.emplace(name);
    }
  }
  return names;
}

const Names& names_without_effect() {
  static const Names names = names_in(without_effect);
  return names;
}

const Names& names_with_effect() {
  static const Names names = names_in(with_effect);
  return names;
}

}  // namespace

bool has_no_effect_on_steps(std::string_view name) { return names_without_effect().contains(name); }

bool is_megatron_argument(std::string_view name) {
  return names_without_effect().contains(name) || names_with_effect().contains(name);
}

std::string nearest_megatron_argument(std::string_view name) {
  std::vector<std::string> names;
  for (const Names* const known : {&names_with_effect(), &names_without_effect()}) {
    for (const std::string& one : *known) names.push_back("--" + one);
  }
  const std::string found = nearest(fmt::format("--{}", name), names);
  return found.empty() ? "" : fmt::format(" (did you mean {}?)", found);
}

}  // namespace hcclsim::study
