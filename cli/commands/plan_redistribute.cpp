#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"
#include "cli/commands/commands.hpp"
#include "cli/options/parse/common.hpp"
#include "cli/options/platform_options.hpp"
#include "cli/print/failure.hpp"
#include "cli/print/plan/redistribution_report.hpp"
#include "cli/terminal/output.hpp"
#include "study/communication/measure/redistribution.hpp"

namespace hcclsim::cli {
namespace {

constexpr std::uint64_t most_devices = 1U << 20U;
constexpr std::uint64_t most_elements = std::uint64_t{1} << 50U;

struct RedistributeCommand : PlatformChoice {
  study::RedistributionSpec spec{};
  std::vector<std::uint32_t> to_matrix{};  ///< empty: as before
  std::vector<std::uint32_t> to_shape{};
  std::string launch = "graph";
  std::string format = "text";
};

/// Parses "2,4"; the product of the numbers is limited.
std::vector<std::uint32_t> parse_sizes(std::string_view text, std::uint64_t most) {
  std::vector<std::uint32_t> sizes;
  std::uint64_t product = 1;
  for (const std::string_view part : split_trimmed(text, ',')) {
    const auto size = parse_count<std::uint32_t>(part);
    if (!size.has_value()) bad_input("option", "'{}' is no size; accepted: whole numbers from 1, such as 2,4", part);
    if (*size > most / product) bad_input("option", "{}: the product is more than {}", text, most);
    product *= *size;
    sizes.push_back(*size);
  }
  return sizes;
}

void redistribute(const OptionOrigins& origins, RedistributeCommand& command) {
  finish_platform_options(origins, {}, command);
  study::RedistributionSpec& spec = command.spec;
  const std::vector<sim::PlatformEdit> edits = spec.platform.edits;
  spec.platform = command.platform_spec();
  spec.platform.edits = edits;
  spec.launch = hccl::parse_launch_mode(command.launch);
  spec.to.devices = command.to_matrix.empty() ? spec.from.devices : hccl::DeviceMatrix{command.to_matrix};
  spec.to.shape = command.to_shape.empty() ? spec.from.shape : models::Shape(command.to_shape);
  const study::RedistributionTimes times = time_redistribution(spec);
  if (command.format == "json") {
    print(redistribution_json(times, spec));
  } else if (command.format == "csv") {
    print_remarks_apart(times.on.unmodelled, times.on.notes);
    print(redistribution_csv(times, spec));
  } else {
    print(redistribution_text(times, spec));
  }
}

void add_layout_options(Command& command, RedistributeCommand& options) {
  study::RedistributionSpec& spec = options.spec;
  const auto add_map = [&](const char* name, hccl::TensorMap& map, const char* help) {
    command.add(name, parsed(hccl::parse_tensor_map, map), help).value_name("MAP").required().with_commas();
  };
  const auto add_sizes = [&](const char* name, std::uint64_t most, auto take, const char* help) -> Option& {
    const auto parse = [most](const std::string& text) { return parse_sizes(text, most); };
    return command.add(name, parsed(parse, take), help).value_name("SIZES").with_commas();
  };
  add_map("--from", spec.from.map,
          "What cuts each axis of the tensor: an axis of the device matrix, counted from the right (0 is the last), "
          "several as (1,0), or - for nothing");
  add_map("--to", spec.to.map, "The same of the layout that the tensor is to have");
  add_sizes(
      "--dev-matrix", most_devices,
      [&spec](std::vector<std::uint32_t> sizes) { spec.from.devices.sizes = std::move(sizes); },
      "How the devices are arranged, the last axis varies fastest with the rank")
      .required();
  add_sizes(
      "--to-dev-matrix", most_devices,
      [&options](std::vector<std::uint32_t> sizes) { options.to_matrix = std::move(sizes); },
      "The same of the layout that the tensor is to have [as --dev-matrix]");
  add_sizes(
      "--shape", most_elements,
      [&spec](std::vector<std::uint32_t> sizes) { spec.from.shape = models::Shape(std::move(sizes)); },
      "Of the whole tensor")
      .required();
  add_sizes(
      "--to-shape", most_elements,
      [&options](std::vector<std::uint32_t> sizes) { options.to_shape = std::move(sizes); },
      "Another shape of the same elements that the tensor is to have [as --shape]");
  command
      .add("--alltoall", on_off_or_python(spec.rules.all_to_all),
           "MindSpore's enable_alltoall: cuts change their axes by all_to_all, not by all_gather and slice")
      .with_default();
  command.add("--dtype", parsed(parse_data_type, spec.type), "Type of the elements").with_default("fp32");
}

}  // namespace

void add_plan_redistribute(Command& plan) {
  plan.add_command(
      "redistribute", "How devices bring a tensor from one layout into another one, and how long it takes",
      [](Command& command) {
        const auto options = std::make_shared<RedistributeCommand>();
        add_layout_options(command, *options);
        options->platform = "atlas800-9000";
        add_platform_options(command, "A platform file, or the name of a shipped one", *options);
        add_platform_edits(command, options->spec.platform.edits);
        add_launch_option(command, options->launch,
                          "graph: tasks are loaded in advance, as in a compiled network; op: each call "
                          "by itself");
        add_network_option(command, options->spec.network);
        add_format_option(command, options->format, {"text", "json", "csv"});
        command.footer(
            "Examples:\n"
            "  hcclsim plan redistribute --from=1,- --to=-,1 --dev-matrix 2,4 --shape 64,64 --alltoall on\n"
            "  hcclsim plan redistribute --from=1,0 --to=0,1 --dev-matrix 2,4 --shape 4096,4096 --dtype "
            "bf16 --platform atlas800t-a2");
        command.on_run([&command, options] {
          with_failure(options->format == "json", [&] { redistribute(OptionOrigins(command, {}), *options); });
        });
      });
}

}  // namespace hcclsim::cli
