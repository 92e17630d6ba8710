#include "cli/options/training/parallel_options.hpp"

#include <array>
#include <cstdlib>

#include "base/error.hpp"
#include "base/text.hpp"
#include "cli/options/parse/common.hpp"
#include "cli/options/parse/origins.hpp"
#include "study/run/experiment/comm_reuse.hpp"

namespace hcclsim::cli {
namespace {

constexpr std::uint64_t most_stages = 4096;
constexpr std::uint64_t most_micro_batches = 65536;
constexpr std::uint64_t most_model_ranks = 16384;

void add_operator_options(Command& command, study::OperatorParallel& operators) {
  command
      .add("--model-parallel,--tp", whole_number(operators.model, 1, most_model_ranks),
           "Neighbouring ranks that share the operators of a transformer: attention by heads, linear operators by "
           "features")
      .with_default();
  command.add("--data-parallel,--dp", whole_number(operators.data, 1, UINT32_MAX),
              "Checks: ranks, or groups that share operators, with samples of their own = NPUs / stages / "
              "--model-parallel / --context-parallel");
  command
      .add("--context-parallel,--cp", whole_number(operators.context, 1, most_model_ranks),
           "Ranks, or groups that share operators, that share the positions of every sequence")
      .with_default();
  command
      .add("--context-kind,--cp-algorithm", parsed(hccl::parse_context_kind, operators.context_kind, "ulysses|ring"),
           "Attention over shared positions: all-to-alls give each rank all positions of a part of the heads, or keys "
           "and values go round a ring")
      .with_default(std::string(name_of(operators.context_kind)));
  command
      .add("--sequence-parallel", on_off_or_python(operators.sequence),
           "These ranks share by rows what they would compute alike: norms, dropouts and residual sums")
      .with_default();
  command
      .add("--vocabulary-parallel", on_off_or_python(operators.vocabulary),
           "These ranks share the table of tokens, the logits and the loss")
      .with_default();
  command
      .add("--expert-parallel,--ep", whole_number(operators.experts, 1, most_model_ranks),
           "Ranks with rows of their own that share the experts of a layer: rows go to their experts by all-to-alls")
      .with_default();
  command
      .add("--expert-tensor-parallel,--etp", whole_number(operators.expert_model, 1, most_model_ranks),
           "Ranks that share each expert by its features: 1, or those of --model-parallel")
      .with_default("those of --model-parallel");
  command
      .add("--moe-imbalance", number(operators.expert_skew, 0, 1000),
           "How unevenly dropless experts are used: their shares fall as 1 / (1 + S j); 0: evenly, 1: Zipf's law")
      .value_name("S")
      .with_default();
  command
      .add("--moe-seed", whole_number(operators.expert_seed, 0, UINT64_MAX),
           "Seed of which experts of a layer are used most")
      .with_default();
  command
      .add("--alltoall,--search-alltoall", on_off_or_python(operators.all_to_all),
           "Where operators are cut: a cut moves from one axis to another by an all-to-all (MindSpore's "
           "enable_alltoall), not by an all-gather and a slice")
      .with_default();
  command.add("--strategy", read_file(operators.strategy),
              "How single operators are cut, before the options above: TOML of patterns such as \"h.*.mlp.c_fc\" = "
              "[[2, 1], [4, 1]], or MindSpore's checkpoint of strategies, JSON or ProtoBuf");
}

void finish_forward_only(const OptionOrigins& origins, study::RunSpec& spec) {
  constexpr std::array of_training{"optimizer-parallel",
                                   "gradient-accumulation-shard",
                                   "recompute",
                                   "parallel-optimizer-comm-recompute",
                                   "mp-comm-recompute",
                                   "recompute-slice-activation",
                                   "fusion",
                                   "set-comm-fusion",
                                   "optimizer",
                                   "loss-scale",
                                   "clip-norm",
                                   "split",
                                   "split-by-size",
                                   "split-by-idx",
                                   "fusion-index",
                                   "split-group",
                                   "group",
                                   "gradients",
                                   "profile",
                                   "numerics",
                                   "explain",
                                   "advice",
                                   "gradients-out",
                                   "pad-segments",
                                   "accumulate",
                                   "grad-dtype",
                                   "optimizer-dtype",
                                   "master-weights"};
  for (const char* const option : of_training) {
    if (origins.asks(option)) {
      bad_input("option", "{} is of training: it does not go with --forward-only", origins.name(option));
    }
  }
  // Weights are kept as the products read them.
  if (!origins.given("param-dtype")) spec.precision.weight = spec.precision.compute;
}

std::vector<std::uint32_t> parse_stage_layers(const std::string& option, const std::string& given) {
  std::vector<std::uint32_t> layers;
  for (const std::string_view item : split_trimmed(given, ',')) {
    const auto number = parse_number<std::uint32_t>(item);
    if (!number.has_value()) {
      bad_input("option",
                "{} {}: '{}' is no number of layers of a part; accepted: numbers such as 10,11,11,8, or balanced",
                option, given, item);
    }
    layers.push_back(*number);
  }
  return layers;
}

void require_options_of_stages(const OptionOrigins& origins, const study::RunSpec& spec) {
  const study::ParallelSpec& parallel = spec.parallel;
  constexpr std::string_view by_fusion = "gradients are fused there by rules, which --fusion gives";
  constexpr std::string_view by_spread =
      "which ranks reduce gradients follows from how layers and operators are spread";
  constexpr std::string_view no_operators = "measured gradients have no layers and operators that could be spread";
  constexpr std::array<std::pair<const char*, std::string_view>, 6> of_data_parallelism{{{"split", by_fusion},
                                                                                         {"split-by-size", by_fusion},
                                                                                         {"split-by-idx", by_fusion},
                                                                                         {"split-group", by_fusion},
                                                                                         {"group", by_spread},
                                                                                         {"gradients", no_operators}}};
  const char* const spread = spec.step.shape.forward_only            ? "--forward-only"
                             : spec.step.shape.stages > 1            ? "--stages"
                             : parallel.operators.model > 1          ? "--model-parallel"
                             : parallel.operators.context > 1        ? "--context-parallel"
                             : parallel.operators.experts > 1        ? "--expert-parallel"
                             : !parallel.operators.strategy.empty()  ? "--strategy"
                             : !parallel.operators.loaded.empty()    ? "load_file of strategy_ckpt_config"
                             : parallel.operators.search.has_value() ? "a search of strategies"
                                                                     : "--optimizer-parallel";
  for (const auto& [option, reason] : of_data_parallelism) {
    if (spec.is_data_parallel() || !origins.asks(option)) continue;
    bad_input("option", "{} does not go with {}: {}", origins.name(option), spread, reason);
  }
  if (!spec.is_data_parallel() && spec.fusion_index.has_value()) {
    bad_input("option", "{} does not go with {}: {}", origins.name("fusion-index"), spread, by_fusion);
  }
}

/// The option counts before the variable.
void take_comm_reuse(const OptionOrigins& origins, study::RunSpec& spec, const ParallelTexts& options) {
  spec.comm_reuse.reset();
  const char* const variable = std::getenv("MS_COMM_COMPILER_OPT");  // NOLINT(concurrency-mt-unsafe): nobody sets it
  const bool given = origins.given("comm-reuse");
  if (!given && (variable == nullptr || *variable == '\0')) return;
  const hccl::CommReuseSwitch choice = hccl::parse_comm_reuse(given ? options.comm_reuse : std::string(variable));
  if (!choice.warning.empty()) {
    spec.notes.push_back(choice.warning);
  } else {
    spec.comm_reuse = choice.limit;
  }
}

}  // namespace

void add_parallel_options(Command& command, study::RunSpec& spec, ParallelTexts& options) {
  study::ParallelSpec& parallel = spec.parallel;
  command.begin_group("How the step is spread");
  command.add("--stages,--pp", whole_number(spec.step.shape.stages, 1, most_stages), "Stages of a pipeline")
      .with_default();
  add_operator_options(command, parallel.operators);
  command.add("--micro-batches", whole_number(parallel.micro_batches, 1, most_micro_batches),
              "Parts of the batch that pass through the pipeline one behind the other [1]");
  command.add("--micro-batch-size", whole_number(parallel.micro_batch_size, 1, 65536),
              "Samples of a micro-batch, in place of --micro-batches or --batch");
  command.add("--global-batch", whole_number(parallel.global_batch, 1, UINT32_MAX),
              "Samples of all replicas per step, in place of --batch");
  command
      .add("--accumulate",
           parsed([](const std::string& given) { return parse_number<std::uint32_t>(given).value_or(0); },
                  options.accumulate),
           "Micro-batches whose gradients are added up, without a pipeline")
      .value_name("N");
  command
      .add("--schedule",
           parsed(hccl::parse_pipeline_schedule, spec.step.shape.schedule,
                  "1f1b|gpipe|1f1b-interleave|gpipe-interleave"),
           "Order in which a stage computes")
      .value_name("")
      .with_default("1f1b");
  command
      .add("--chunks,--vpp", whole_number(spec.step.shape.chunks, 1, 1024),
           "Parts of the network that each stage has, with an interleaving schedule")
      .with_default();
  command
      .add("--stage-layers", text(options.stage_layers),
           "Layers of each part, such as 10,11,11,8, or balanced: for a short step, messages counted (default: evenly)")
      .value_name("LIST");
  command
      .add("--optimizer-parallel", parsed(hccl::parse_optimizer_parallel, parallel.optimizer),
           "Parameters that the replicas share: off, on (MindSpore's), dealt (that of its data_parallel mode), zero1, "
           "zero2, zero3; with :shard=N,threshold=KB")
      .value_name("KIND")
      .with_default("off");
  command.add("--gradient-accumulation-shard", on_off_or_python(parallel.accumulation_shard),
              "Sums of gradients are kept in parts, which every micro-batch reduces [off]");
  command
      .add("--recompute", parsed(hccl::parse_recompute, parallel.recompute),
           "Activations that the backward pass computes again: none, full, layers:N (N,N,... per stage), "
           "operators:NAME,...")
      .value_name("WHAT")
      .with_default("none");
  command
      .add("--parallel-optimizer-comm-recompute", on_off_or_python(parallel.parallel_optimizer_comm_recompute),
           "Recomputed layers gather their weights again for the backward pass, and do not keep them meanwhile")
      .with_default();
  command
      .add("--mp-comm-recompute", on_off_or_python(parallel.mp_comm_recompute),
           "Recomputed layers repeat collectives of operators that are cut over ranks")
      .with_default();
  command
      .add("--recompute-slice-activation", on_off_or_python(parallel.recompute_slice_activation),
           "Ranks that an operator is cut over keep a part each of what recomputed layers start from")
      .with_default();
  command
      .add("--fusion",
           parsed(hccl::parse_fusion_rules, [&parallel](const hccl::FusionRules& rules) { parallel.fusion = rules; }),
           "Tensors that travel together: none, all, auto (64 MB), size:MB, index:LIST, id; or of each kind, such as "
           "'allreduce=size:32;reducescatter=none;allgather=all'")
      .value_name("RULE")
      .with_default("auto with --stages and --optimizer-parallel");
  command
      .add("--set-comm-fusion", parsed(hccl::parse_fusion_ids, parallel.fusion_ids),
           "MindSpore's fusion ids of parameters by their names, such as 'layer1*=2;fc*=0': equal ids travel together, "
           "0 "
           "alone [1]")
      .value_name("PATTERN=ID;...");
  command.add("--forward-only", flag(spec.step.shape.forward_only),
              "The network is applied, not trained: no backward pass, no update; --pipeline-result-broadcast True "
              "gives its results to all stages");
  command.add("--causal-flops", flag(parallel.causal_flops), "Count half of the operations of causal attention in MFU");
  command
      .add("--comm-reuse", parsed(hccl::parse_comm_reuse, options.comm_reuse),
           "MindSpore's MS_COMM_COMPILER_OPT: communication operators that do the same share one, and streams of the "
           "device are counted. -1: at most 1000 calls, or their number; off: streams are counted only")
      .value_name("COUNT");
}

void finish_parallel_options(const OptionOrigins& origins, study::RunSpec& spec, const ParallelTexts& options) {
  study::ParallelSpec& parallel = spec.parallel;
  take_comm_reuse(origins, spec, options);
  parallel.batch_given = origins.given("batch");
  if (!options.accumulate.empty()) {
    if (spec.step.shape.stages > 1) {
      bad_input("option", "{}: with stages, --micro-batches says how many micro-batches a step has",
                origins.name("accumulate"));
    }
    const auto count = parse_number<std::uint32_t>(options.accumulate).value_or(0);
    if (count == 0) {
      bad_input("option", "{} {}: accepted: 1 or more", origins.name("accumulate"), options.accumulate);
    }
    if (parallel.micro_batches.value_or(count) != count) {
      bad_input("option", "{} {} and {} {} say different things", origins.name("accumulate"), count,
                origins.name("micro-batches"), *parallel.micro_batches);
    }
    if (!origins.given("micro-batches")) parallel.micro_batches_option = "--accumulate";
    parallel.micro_batches = count;
  }
  if (options.stage_layers == "balanced") {
    parallel.balanced = true;
  } else if (!options.stage_layers.empty()) {
    parallel.stage_layers = parse_stage_layers(origins.name("stage-layers"), options.stage_layers);
  }
  parallel.optimizer.accumulation_shard = parallel.accumulation_shard.value_or(false);
  if (parallel.micro_batches.value_or(1) > 1 && origins.given("gradients")) {
    bad_input("option", "{} is of one micro-batch: it does not go with several", origins.name("gradients"));
  }
  if (spec.step.shape.forward_only) finish_forward_only(origins, spec);
  // ZeRO keeps and sends gradients as the backward pass writes them.
  const bool zero = parallel.optimizer.kind > hccl::OptimizerParallelKind::on;
  const bool gradient_given = origins.given("grad-dtype") || origins.given("param-dtype");
  if (zero && !gradient_given) spec.precision.gradient = spec.precision.compute;
  if ((zero || gradient_given) && !origins.given("comm-dtype")) spec.communication_type = spec.precision.gradient;
  // MindSpore's graph, whose reductions run beside the backward pass.
  if (!spec.is_data_parallel()) {
    if (!origins.given("framework")) spec.step.framework = study::Framework::mindspore;
    if (!origins.given("hcom-parallel")) spec.step.hcom_parallel = true;
  }
}

void require_effect(const OptionOrigins& origins, const study::RunSpec& spec, const ParallelTexts& options) {
  const study::ParallelSpec& parallel = spec.parallel;
  for (const char* const option : {"schedule", "chunks", "stage-layers"}) {
    if (spec.step.shape.stages > 1 || options.searched || !origins.asks(option)) continue;
    bad_input("option", "{} is of a pipeline: it needs --stages of 2 or more", origins.name(option));
  }
  for (const char* const option : {"sequence-parallel", "vocabulary-parallel"}) {
    if (parallel.operators.model > 1 || options.searched || !origins.asks(option)) continue;
    bad_input("option", "{} is of ranks that share operators: it needs --model-parallel of 2 or more",
              origins.name(option));
  }
  if (parallel.operators.context == 1 && !options.searched && origins.asks("context-kind")) {
    bad_input("option", "{} is of ranks that share positions: it needs --context-parallel of 2 or more",
              origins.name("context-kind"));
  }
  const std::uint32_t of_expert = parallel.operators.expert_model.value_or(1);
  if (of_expert > 1 && of_expert != parallel.operators.model && !options.searched) {
    bad_input("option", "{} {}: an expert is shared by its features among 1 rank, or all {} of --model-parallel",
              origins.name("expert-tensor-parallel"), of_expert, parallel.operators.model);
  }
  for (const char* const option : {"moe-imbalance", "moe-seed"}) {
    if (parallel.operators.experts > 1 || options.searched || !origins.asks(option)) continue;
    bad_input("option", "{} is of ranks that share experts: it needs --expert-parallel of 2 or more",
              origins.name(option));
  }
  using enum hccl::OptimizerParallelKind;
  const hccl::OptimizerParallelKind kind = parallel.optimizer.kind;
  if (kind == dealt && parallel.operators.cuts()) {
    bad_input("option",
              "--optimizer-parallel dealt is of data parallelism, in which every rank has whole operators; leave out "
              "what cuts them, such as --model-parallel, --expert-parallel or --strategy");
  }
  const char* const shard = "gradient-accumulation-shard";
  if (!origins.given(shard)) return;
  const bool parts = parallel.accumulation_shard.value_or(false);
  if (parts && kind < on) {
    bad_input("option", "{} on: parameters are not shared ({}); it needs --optimizer-parallel on or zero1",
              origins.name(shard), name_of(kind));
  }
  if (!parts && kind >= zero2) {
    bad_input("option", "{} off contradicts --optimizer-parallel {}, which keeps sums of gradients in parts",
              origins.name(shard), name_of(kind));
  }
}

void finish_fusion(const OptionOrigins& origins, study::RunSpec& spec) {
  study::ParallelSpec& parallel = spec.parallel;
  if (spec.fusion_index.has_value() && spec.step.framework != study::Framework::mindspore) {
    bad_input("option", "{} is MindSpore's; give --framework mindspore, or --split-by-idx for HCCL's own numbering",
              origins.name("fusion-index"));
  }
  const bool dealt = parallel.optimizer.kind == hccl::OptimizerParallelKind::dealt;
  if (dealt && spec.fusion_index.has_value()) {
    parallel.fusion = hccl::FusionRules{.allreduce = {.mode = hccl::FusionMode::index, .last = *spec.fusion_index}};
    spec.fusion_index.reset();
  }
  require_options_of_stages(origins, spec);
  if (!parallel.fusion_ids.empty() && spec.step.framework != study::Framework::mindspore) {
    bad_input("option", "{} is MindSpore's; give --framework mindspore", origins.name("set-comm-fusion"));
  }
  if (!origins.given("fusion") || !spec.is_data_parallel()) return;
  if (spec.step.framework != study::Framework::mindspore) {
    bad_input("option", "{} is MindSpore's; give --framework mindspore, or --split for HCCL's own",
              origins.name("fusion"));
  }
  parallel.fusion->allreduce.ends_above = parallel.fusion->allreduce.mode == hccl::FusionMode::size;
}

}  // namespace hcclsim::cli
