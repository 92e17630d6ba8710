#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

#include "base/text.hpp"
#include "study/files/foreign/megatron/arguments.hpp"

// Ranks, the NPUs that they are on, and how the step is spread over them.
namespace hcclsim::study {
namespace {

/// NPUs of a generation, and the platforms that come with this program.
struct MegatronPlatform {
  std::string_view generation;
  std::string_view soc;  ///< for `platform generate`
  std::uint64_t ranks_of_server;
  std::string_view server;
  std::string_view servers;  ///< several
  std::uint64_t most_ranks;
};
constexpr MegatronPlatform a2_platform{"A2", "910B2", 8, "atlas800t-a2", "atlas800t-a2-x2", 16};
constexpr MegatronPlatform a3_platform{"A3", "910_9391", 16, "atlas900-a3", "atlas900-a3-superpod", 64};

/// Whether a name has a generation as a word of its own: "pretrain_8k_A3_ptd.sh".
bool names_generation(std::string_view file, std::string_view generation) {
  const std::string name = in_lower_case(file.substr(file.rfind('/') + 1));
  const std::string word = in_lower_case(generation);
  const auto is_letter = [&](std::size_t at) {
    return at < name.size() && std::isalnum(static_cast<unsigned char>(name[at])) != 0;
  };
  for (std::size_t at = name.find(word); at != std::string::npos; at = name.find(word, at + 1)) {
    if ((at == 0 || !is_letter(at - 1)) && !is_letter(at + word.size())) return true;
  }
  return false;
}

class MegatronRanks {
 public:
  MegatronRanks(MegatronArguments& args, const std::string& file)
      : args_(args),
        writer_(args.writer()),
        file_(file),
        layers_(args.at_least_one("num-layers")),
        stages_(args.at_least_one("pipeline-model-parallel-size")) {}

  void map() {
    map_number();
    const auto set = [&](const char* name, const char* option) {
      if (args_.at_least_one(name) > 1) args_.set(name, option, std::to_string(args_.at_least_one(name)));
    };
    set("tensor-model-parallel-size", "model-parallel");
    set("pipeline-model-parallel-size", "stages");
    set("context-parallel-size", "context-parallel");
    set("expert-model-parallel-size", "expert-parallel");
    map_positions();
    map_operators();
    map_parts();
    map_stage_layers();
  }

 private:
  [[nodiscard]] std::uint32_t line() const { return args_.line_of("num-layers"); }

  void map_number() {
    std::string from;
    const MegatronPlatform* const platform = find_platform(from);
    const std::uint64_t ranks = args_.ranks().value_or(0);
    if (platform != nullptr) {
      const bool several = ranks > platform->ranks_of_server;
      writer_.set(from, "platform", std::string(several ? platform->servers : platform->server), line());
    }
    if (ranks == 0) {
      writer_.leave_out("ranks", "the script does not say how many there are: --npus, or all of the platform");
      return;
    }
    std::string source = fmt::format("{} ranks of the launcher", ranks);
    if (platform != nullptr && ranks > platform->most_ranks) {
      source += fmt::format(
          "; a platform for them is what 'hcclsim platform generate --soc {} --servers {} --output "
          "cluster.xml' writes, for --platform cluster.xml",
          platform->soc, (ranks + platform->ranks_of_server - 1) / platform->ranks_of_server);
    }
    writer_.set(std::move(source), "npus", std::to_string(ranks), line());
  }

  /// nullptr if nothing tells which NPUs there are. `from`: what tells it.
  const MegatronPlatform* find_platform(std::string& from) {
    for (const MegatronPlatform* const platform : {&a2_platform, &a3_platform}) {
      from = fmt::format("the name of the script has {}", platform->generation);
      if (names_generation(file_, platform->generation)) return platform;
    }
    if (names_generation(file_, "A5")) {
      writer_.leave_out("an NPU of generation A5",
                        "no platform that comes with hcclsim has it; --platform says which one counts");
      return nullptr;
    }
    if (args_.ranks_of_node() == a3_platform.ranks_of_server) {
      from = "16 ranks of a node are the dies of an A3";
      return &a3_platform;
    }
    if (!args_.is_mindspeed()) return nullptr;
    from = "a script for NPUs that does not say which: --platform says otherwise";
    return &a2_platform;
  }

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
    if (!args_.is_mindspeed()) return;
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
    const bool experts = args_.at_least_one("num-experts") > 1;
    if (experts && args_.at_least_one("expert-tensor-parallel-size", sharers) != sharers) {
      args_.refuse("expert-tensor-parallel-size", "experts are cut over as many ranks as the other operators");
    }
  }

  /// Parts of the stages, and their order.
  void map_parts() {
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

  void map_stage_layers() {
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
    std::uint64_t parts = 0;
    for (const std::string_view item : split(list, ',')) {
      sum += parse_number<std::uint32_t>(trimmed(item)).value_or(0);
      ++parts;
    }
    if (parts != stages_ || sum != layers_)
      writer_.fail(args_.line_of("num-layer-list"), "{}: {} stages with {} layers, must be {} with {}",
                   args_.source("num-layer-list"), parts, sum, stages_, layers_);
    if (stages_ > 1) args_.set("num-layer-list", "stage-layers", list);
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
    if (std::ranges::find(busy, 0U) != busy.end()) {
      args_.refuse("noop-layers", fmt::format("{} has no layer that computes, and a part of a stage has at least one",
                                              chunks_ > 1 ? "a part of a stage" : "a stage"));
      return;
    }
    args_.set("noop-layers", "stage-layers", fmt::format("{}", fmt::join(busy, ",")));
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
    std::vector<std::string> list;
    for (std::uint64_t stage = 0; stage < stages_; ++stage) {
      const bool is_first = stage == 0 && first.has_value();
      const bool is_last = stage + 1 == stages_ && last.has_value();
      list.push_back(std::to_string(is_first ? *first : is_last ? *last : (layers_ - given) / others));
    }
    args_.set(name, "stage-layers", fmt::format("{}", fmt::join(list, ",")));
  }

  MegatronArguments& args_;
  MappingWriter& writer_;
  const std::string& file_;
  std::uint64_t layers_;
  std::uint64_t stages_;
  std::uint64_t chunks_ = 1;
};

}  // namespace

void map_megatron_ranks(MegatronArguments& arguments, const std::string& file) { MegatronRanks(arguments, file).map(); }

}  // namespace hcclsim::study
