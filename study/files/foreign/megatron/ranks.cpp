#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <string_view>

#include "base/text.hpp"
#include "study/files/foreign/megatron/layout.hpp"
#include "study/files/foreign/megatron/network.hpp"

// Ranks, the NPUs that they are on, and how the step is spread over them.
namespace hcclsim::study {
namespace {

class MegatronRanks {
 public:
  MegatronRanks(MegatronArguments& args, const MegatronNetwork& network)
      : args_(args),
        writer_(args.writer()),
        network_(network),
        layers_(args.at_least_one("num-layers")),
        stages_(args.at_least_one("pipeline-model-parallel-size")) {}

  void map() {
    map_launch(writer_, args_.launch(), line());
    const auto set = [&](const char* name, const char* option) {
      if (args_.at_least_one(name) > 1) args_.set(name, option, std::to_string(args_.at_least_one(name)));
    };
    set("tensor-model-parallel-size", "model-parallel");
    set("pipeline-model-parallel-size", "stages");
    set("context-parallel-size", "context-parallel");
    map_positions();
    map_operators();
    map_parts();
    map_stage_layers();
  }

 private:
  [[nodiscard]] std::uint32_t line() const { return args_.line_of("num-layers"); }

  void map_positions() {
    const bool shares = args_.at_least_one("context-parallel-size") > 1;
    for (const char* const how : {"cp-comm-type", "context-parallel-algo"}) {
      if (args_.has(how) && !shares) writer_.no_effect(args_.source(how), "no ranks share positions");
    }
    if (!shares) return;
    // MindSpeed's counts before Megatron's own.
    const char* const name = args_.has("context-parallel-algo") ? "context-parallel-algo" : "cp-comm-type";
    const std::string kind = args_.text(name).value_or("p2p");
    const bool ring = kind == "p2p" || kind == "megatron_cp_algo";
    const auto take = [&](const char* option) {
      writer_.set(args_.source(name), "context-kind", option, args_.line_of(name));
    };
    if (ring) {
      take("ring");
      note_ring();
    } else if (kind == "a2a" || kind == "ulysses_cp_algo") {
      take("ulysses");
    } else if (kind == "hybrid_cp_algo" || kind == "a2a+p2p") {
      take("ring");
      writer_.leave_out(args_.source(name),
                        "all ranks that share positions make one ring, without all-to-alls inside of it: longer ways "
                        "of keys and values, so that the step is slower than the real one where they do not hide");
    } else if (kind == "kvallgather_cp_algo" || kind == "all_gather") {
      take("ring");
      writer_.leave_out(args_.source(name),
                        "keys and values go round a ring beside the attention; gathered before it they take as many "
                        "bytes that nothing hides, so that the step is faster than the real one");
    } else {
      args_.refuse(name,
                   "positions are shared by rings (p2p, megatron_cp_algo) or by all-to-alls (a2a, ulysses_cp_algo)");
    }
  }

  void note_ring() {
    if (!args_.launch().is_for_npus) return;
    if (!args_.has("use-cp-send-recv-overlap"))
      writer_.leave_out("no --use-cp-send-recv-overlap",
                        "ranks of a ring send and receive at once; one behind the other takes up to twice as long, so "
                        "that the step is faster than the real one where that does not hide");
    if (!args_.has("use-fused-ring-attention-update"))
      writer_.leave_out("no --use-fused-ring-attention-update",
                        "what the blocks of a ring give is put together in one kernel; about ten take longer, so that "
                        "the step is faster than the real one");
  }

  /// Ranks that share operators.
  void map_operators() {
    const std::uint64_t sharers = args_.at_least_one("tensor-model-parallel-size");
    if (sharers > 1) {
      if (args_.has("sequence-parallel")) args_.set("sequence-parallel", "sequence-parallel", "on");
      writer_.set(fmt::format("{}, which cuts the table of tokens too", args_.source("tensor-model-parallel-size")),
                  "vocabulary-parallel", "on", args_.line_of("tensor-model-parallel-size"));
    } else if (args_.has("sequence-parallel")) {
      writer_.no_effect(args_.source("sequence-parallel"), "no ranks share operators");
    }
    if (network_.experts) map_experts(sharers);
  }

  /// Ranks that share experts: by their features as many as share other operators, unless told otherwise.
  void map_experts(std::uint64_t sharers) {
    const bool extends = args_.has("moe-tp-extend-ep") || args_.has("moe-extended-tp");
    const std::uint64_t of_one = extends ? 1 : args_.at_least_one("expert-tensor-parallel-size", sharers);
    const std::uint64_t ranks = args_.at_least_one("expert-model-parallel-size") * (extends ? sharers : 1);
    if (of_one != sharers) {
      const char* const name = extends ? "moe-tp-extend-ep" : "expert-tensor-parallel-size";
      if (of_one != 1)
        args_.refuse(name, "each expert is shared by the ranks that share other operators, or by none");
      else
        args_.set(name, "expert-tensor-parallel", "1");
    }
    if (ranks > 1) args_.set("expert-model-parallel-size", "expert-parallel", std::to_string(ranks));
  }

  /// Parts of the stages, and their order.
  void map_parts() {
    if (args_.has("pipeline-model-parallel-layout")) {
      map_layout();
      return;
    }
    if (args_.text("schedules-method") == "dualpipev") {
      map_dualpipe();
      return;
    }
    if (args_.has("num-layers-per-virtual-pipeline-stage")) {
      const std::uint64_t each = args_.at_least_one("num-layers-per-virtual-pipeline-stage");
      if (layers_ % (stages_ * each) != 0)
        writer_.fail(args_.line_of("num-layers-per-virtual-pipeline-stage"),
                     "{} layers are not {} stages with parts of {} layers", layers_, stages_, each);
      chunks_ = layers_ / stages_ / each;
      if (chunks_ > 1)
        args_.set("num-layers-per-virtual-pipeline-stage", "chunks", std::to_string(chunks_));
      else
        writer_.no_effect(args_.source("num-layers-per-virtual-pipeline-stage"), "each stage is one part");
    } else if (args_.has("num-virtual-stages-per-pipeline-rank")) {
      chunks_ = args_.at_least_one("num-virtual-stages-per-pipeline-rank");
      args_.set("num-virtual-stages-per-pipeline-rank", "chunks", std::to_string(chunks_));
    }
    if (chunks_ > 1) writer_.set(fmt::format("{} parts of each stage", chunks_), "schedule", "1f1b-interleave", line());
  }

  /// Two parts of each stage, as DualPipeV has them; it puts the last one on the first rank, which fills the pipeline
  /// as fast.
  void map_dualpipe() {
    if (stages_ == 1 || layers_ % (2 * stages_) != 0)
      writer_.fail(args_.line_of("schedules-method"), "{}: {} layers are no even share of two parts of {} stages",
                   args_.source("schedules-method"), layers_, stages_);
    chunks_ = 2;
    args_.set("schedules-method", "chunks", "2");
    args_.set("schedules-method", "schedule", "1f1b-interleave");
    writer_.leave_out(args_.source("schedules-method"),
                      "the order is that of 1f1b-interleave with two parts, whose bubble is as long: where forward and "
                      "backward overlap (--moe-fb-overlap) the step is slower than the real one; every rank of "
                      "DualPipeV keeps activations of two parts times stages and one more, and its first one the "
                      "logits, which is more memory than accounted on late stages");
  }

  /// Layers part by part.
  void map_layout() {
    const char* const name = "pipeline-model-parallel-layout";
    const auto parts = layers_of_layout(args_.text(name).value_or(""));
    if (!parts.has_value())
      writer_.fail(args_.line_of(name), "{}: is no layout; accepted: letters E, t, m and L, | between parts, x*N",
                   args_.source(name));
    const std::uint64_t sum = std::accumulate(parts->begin(), parts->end(), std::uint64_t{0});
    if (parts->size() % stages_ != 0 || sum != layers_ - args_.idle_layers().size())
      writer_.fail(args_.line_of(name), "{}: {} parts with {} layers, must be those of {} stages with {}",
                   args_.source(name), parts->size(), sum, stages_, layers_);
    chunks_ = parts->size() / stages_;
    if (chunks_ > 1) {
      args_.set(name, "chunks", std::to_string(chunks_));
      args_.set(name, "schedule", "1f1b-interleave");
    }
    if (parts->size() > 1) set_stage_layers(name, *parts);
  }

  void map_stage_layers() {
    if (args_.all().contains("pipeline-model-parallel-layout")) return;    // which says it
    if (args_.all().contains("layerwise-disaggregated-training")) return;  // which is refused
    const bool idle = !args_.idle_layers().empty();
    if (args_.has("num-layer-list") && idle) {
      writer_.no_effect(args_.source("num-layer-list"), "--noop-layers counts before it");
    } else if (args_.has("num-layer-list")) {
      map_layer_list();
      return;
    }
    if (idle)
      map_idle_layers();
    else
      map_uneven_stages();
  }

  void map_layer_list() {
    const std::string list = *args_.text("num-layer-list");
    std::uint64_t sum = 0;
    std::vector<std::uint64_t> parts;
    for (const std::string_view item : split(list, ','))
      sum += parts.emplace_back(parse_number<std::uint32_t>(trimmed(item)).value_or(0));
    if (parts.size() != stages_ || sum != layers_)
      writer_.fail(args_.line_of("num-layer-list"), "{}: {} stages with {} layers, must be {} with {}",
                   args_.source("num-layer-list"), parts.size(), sum, stages_, layers_);
    if (stages_ > 1) set_stage_layers("num-layer-list", parts);
  }

  void set_stage_layers(const char* name, std::vector<std::uint64_t> layers) {
    for (std::uint64_t& each : layers) each *= network_.layers_of_one;
    args_.set(name, "stage-layers", fmt::format("{}", fmt::join(layers, ",")));
  }

  void map_idle_layers() {
    const std::uint64_t parts = stages_ * chunks_;
    if (layers_ % parts != 0) writer_.fail(line(), "{} layers are no even share of {} stages", layers_, parts);
    std::vector<std::uint64_t> busy(parts, layers_ / parts);
    for (const std::uint64_t layer : args_.idle_layers()) {
      if (layer >= layers_)
        writer_.fail(args_.line_of("noop-layers"), "{}: there are {} layers", args_.source("noop-layers"), layers_);
      --busy[layer / (layers_ / parts)];
    }
    if (parts == 1) return;
    set_stage_layers("noop-layers", std::move(busy));
  }

  void map_uneven_stages() {
    const auto first = args_.whole("decoder-first-pipeline-num-layers");
    const auto last = args_.whole("decoder-last-pipeline-num-layers");
    if (!first.has_value() && !last.has_value()) return;
    const char* const name =
        first.has_value() ? "decoder-first-pipeline-num-layers" : "decoder-last-pipeline-num-layers";
    const std::uint64_t others = stages_ - (first.has_value() ? 1 : 0) - (last.has_value() ? 1 : 0);
    const std::uint64_t given = first.value_or(0) + last.value_or(0);
    if (stages_ < 2 || others == 0 || given > layers_ || (layers_ - given) % others != 0)
      writer_.fail(args_.line_of(name), "{}: the other {} layers are no even share of the other stages",
                   args_.source(name), layers_ - std::min(given, layers_));
    std::vector<std::uint64_t> list(stages_, (layers_ - given) / others);
    list.front() = first.value_or(list.front());
    list.back() = last.value_or(list.back());
    set_stage_layers(name, std::move(list));
  }

  MegatronArguments& args_;
  MappingWriter& writer_;
  const MegatronNetwork& network_;
  std::uint64_t layers_;
  std::uint64_t stages_;
  std::uint64_t chunks_ = 1;
};

}  // namespace

void map_megatron_ranks(MegatronArguments& arguments, const MegatronNetwork& network) {
  MegatronRanks(arguments, network).map();
}

}  // namespace hcclsim::study
