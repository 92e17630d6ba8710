#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include "base/text.hpp"

#include "study/files/foreign/megatron/network.hpp"

namespace hcclsim::study {
namespace {

/// Whether each layer has experts, as "([0]*3+[1]*58)" says; nothing if it is no such list.
std::optional<std::vector<bool>> layers_of_list(std::string_view text) {
  std::string letters(text);
  std::erase_if(letters, [](char c) { return c == ' ' || c == '(' || c == ')'; });
  std::vector<bool> layers;
  for (const std::string_view part : split(letters, '+')) {
    const std::size_t end = part.find(']');
    if (!part.starts_with('[') || end == std::string_view::npos) return std::nullopt;
    const std::string_view behind = part.substr(end + 1);
    const auto times = behind.empty() ? std::optional(1U)
                                      : parse_number<std::uint32_t>(behind.starts_with('*') ? behind.substr(1) : "");
    if (!times.has_value() || *times > 10'000) return std::nullopt;
    std::vector<bool> items;
    for (const std::string_view item : split(part.substr(1, end - 1), ',')) {
      if (item != "0" && item != "1") return std::nullopt;
      items.push_back(item == "1");
    }
    for (std::uint32_t i = 0; i < *times; ++i) layers.insert(layers.end(), items.begin(), items.end());
  }
  return layers;
}

class MegatronExperts {
 public:
  MegatronExperts(MegatronArguments& args, const MegatronNetwork& network)
      : args_(args), writer_(args.writer()), network_(network), count_(args.at_least_one("num-experts")) {}

  void map() {
    args_.set("num-experts", "experts", std::to_string(count_));
    map_width();
    map_choice();
    map_shared();
    map_places();
    map_capacity();
    const std::string dispatcher = args_.text("moe-token-dispatcher-type").value_or("allgather");
    if (!dispatcher.starts_with("alltoall") && args_.at_least_one("expert-model-parallel-size") > 1) {
      writer_.leave_out(
          args_.source("moe-token-dispatcher-type"),
          fmt::format("rows go to their experts by all-to-alls; by {} all ranks take all rows, so that the "
                      "step is faster than the real one",
                      dispatcher));
    }
  }

 private:
  [[nodiscard]] std::uint32_t line() const { return args_.line_of("num-experts"); }

  void map_width() {
    if (args_.has("moe-ffn-hidden-size")) {
      width_ = args_.at_least_one("moe-ffn-hidden-size");
      args_.set("moe-ffn-hidden-size", "expert-width", std::to_string(width_));
      return;
    }
    width_ = args_.at_least_one("ffn-hidden-size", 4 * args_.at_least_one("hidden-size"));
    writer_.set("no --moe-ffn-hidden-size: experts are as wide as layers without them", "expert-width",
                std::to_string(width_), line());
  }

  /// Experts that hand rows on as they are take their share of the rows.
  void map_choice() {
    const std::uint64_t chosen = args_.at_least_one("moe-router-topk", 2);
    const std::uint64_t idle = args_.whole("num-zero-experts").value_or(0);
    const std::uint64_t busy = std::max<std::uint64_t>(1, (chosen * count_ + (count_ + idle) / 2) / (count_ + idle));
    std::string source = args_.source("moe-router-topk");
    if (idle > 0) {
      args_.set("num-zero-experts", "idle-experts", std::to_string(idle));
      source += fmt::format(", of which {} have weights where all are used evenly", busy);
    }
    writer_.set(std::move(source), "moe-top-k", std::to_string(busy), args_.line_of("moe-router-topk"));
  }

  void map_shared() {
    const char* const name =
        args_.has("moe-shared-expert-intermediate-size") ? "moe-shared-expert-intermediate-size" : "n-shared-experts";
    const bool as_whole = std::string_view(name) != "n-shared-experts";
    if (as_whole && args_.has("n-shared-experts")) {
      writer_.no_effect(args_.source("n-shared-experts"),
                        "--moe-shared-expert-intermediate-size says how wide they are");
    }
    std::uint64_t width = args_.whole(name).value_or(0) * (as_whole ? 1 : width_);
    if (network_.layers_of_one > 1) {
      writer_.set("the dense half beside the experts", "shared-width",
                  std::to_string(args_.at_least_one("ffn-hidden-size")), line());
      return;
    }
    writer_.set(args_.source(name), "shared-width", std::to_string(width), args_.line_of(name));
    if (width == 0) return;
    if (args_.has("shared-expert-gate")) {
      args_.set("shared-expert-gate", "shared-gate", "on");
    } else if (network_.layer_spec.starts_with("qwen2_moe")) {
      writer_.set(args_.source("spec"), "shared-gate", "on", args_.line_of("spec"));
    }
  }

  /// Which layers have experts. -1 stands for what is so without the argument.
  void map_places() {
    const auto dense = args_.text("first-k-dense-replace").value_or("0");
    const auto interval = args_.text("moe-layer-freq").value_or("1");
    if (interval.find('[') != std::string::npos) {
      map_list_of_places(interval);
      return;
    }
    const std::string layers = dense == "-1" ? "0" : dense;
    writer_.set(args_.source("first-k-dense-replace"), "dense-layers", layers, args_.line_of("first-k-dense-replace"));
    if (network_.layers_of_one > 1) {
      writer_.set("every layer, which is two here", "expert-interval", std::to_string(network_.layers_of_one), line());
    } else if (interval == "-1" || interval == "1") {
      if (args_.has("moe-layer-freq"))
        writer_.no_effect(args_.source("moe-layer-freq"), "all these layers have experts");
    } else {
      args_.set("moe-layer-freq", "expert-interval", std::to_string(args_.at_least_one("moe-layer-freq")));
    }
  }

  /// Layers without experts in front, or each so many-th one with them.
  void map_list_of_places(const std::string& text) {
    const char* const name = "moe-layer-freq";
    const auto layers = layers_of_list(text);
    if (!layers.has_value() || layers->size() != args_.at_least_one("num-layers"))
      writer_.fail(args_.line_of(name), "{}: is no list of {} zeros and ones, such as ([0]*1+[1]*{})",
                   args_.source(name), args_.at_least_one("num-layers"), args_.at_least_one("num-layers") - 1);
    const auto first = static_cast<std::size_t>(std::ranges::find(*layers, true) - layers->begin());
    const std::size_t second =
        first < layers->size()
            ? static_cast<std::size_t>(
                  std::find(layers->begin() + static_cast<std::ptrdiff_t>(first) + 1, layers->end(), true) -
                  layers->begin())
            : first;
    const std::size_t interval = second - first;
    const auto has = [&](std::size_t layer) { return layer >= first && layer % interval == 0; };
    for (std::size_t layer = 0; layer < layers->size(); ++layer) {
      if (interval > 0 && (*layers)[layer] == has(layer)) continue;
      args_.refuse(name, "layers in front have no experts, and after them all have some, or each so many-th one");
      return;
    }
    args_.set(name, "dense-layers", std::to_string(first));
    if (interval > 1) args_.set(name, "expert-interval", std::to_string(interval));
  }

  void map_capacity() {
    if (args_.has("moe-expert-capacity-factor") && !args_.has("moe-pad-expert-input-to-capacity")) {
      writer_.set("no --moe-pad-expert-input-to-capacity", "moe-capacity", "dropless", line());
      writer_.leave_out(args_.source("moe-expert-capacity-factor"),
                        "rows beyond it are dropped where experts are used unevenly: with --moe-imbalance the step is "
                        "slower than the real one");
    } else if (args_.has("moe-expert-capacity-factor")) {
      args_.set("moe-expert-capacity-factor", "moe-capacity", *args_.text("moe-expert-capacity-factor"));
      args_.set("moe-expert-capacity-factor", "moe-capacity-of-parts", "on");
    } else {
      writer_.set("no --moe-expert-capacity-factor", "moe-capacity", "dropless", line());
    }
  }

  MegatronArguments& args_;
  MappingWriter& writer_;
  const MegatronNetwork& network_;
  std::uint64_t count_;
  std::uint64_t width_ = 0;  ///< features inside an expert
};

}  // namespace

void map_megatron_experts(MegatronArguments& arguments, const MegatronNetwork& network) {
  if (network.experts) MegatronExperts(arguments, network).map();
}

}  // namespace hcclsim::study
