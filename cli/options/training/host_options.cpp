#include "cli/options/training/host_options.hpp"

#include "base/error.hpp"
#include "base/text.hpp"
#include "cli/options/parse/command.hpp"
#include "cli/options/parse/common.hpp"
#include "cli/options/parse/values.hpp"

namespace hcclsim::cli {
namespace {

constexpr double most_images_per_second = 1e12;
constexpr double most_launch_us = 1e6;
constexpr std::uint64_t most_batches = 1024;

std::optional<double> parse_rate(const std::string& text) {
  if (text == "unlimited") return std::nullopt;
  const std::optional<double> rate = parse_number<double>(text);
  if (!rate.has_value() || !(*rate > 0 && *rate <= most_images_per_second)) {
    bad_input("option", "'{}': accepted: unlimited, or a number above 0, up to 1e12", text);
  }
  return rate;
}

}  // namespace

void add_host_options(Command& command, HostOptions& options) {
  command.begin_group("What the host does");
  command
      .add("--exec", one_of({"sink", "eager"}, options.exec),
           "sink: the graph is launched at once; eager: the host issues each kernel and collective of a step, one "
           "behind "
           "the other")
      .with_default();
  command
      .add("--host-launch-us", number(options.launch_us, 0.001, most_launch_us),
           "Time of the host to issue a kernel, with --exec eager")
      .with_default("5");
  command
      .add("--data-images-per-s", parsed(parse_rate, options.images_per_second),
           "Samples per second that the data workers of a server prepare, shared evenly by its NPUs; batches are then "
           "copied to the device")
      .value_name("RATE")
      .with_default("unlimited");
  command
      .add("--prefetch-depth", whole_number(options.prefetch, 0, most_batches),
           "Batches that are ready at most before the step that takes them, as MindSpore's set_prefetch_size; 0: a "
           "batch "
           "is prepared when its step begins")
      .with_default();
}

void finish_host_options(const OptionOrigins& origins, const HostOptions& options, study::RunSpec& spec) {
  const bool eager = options.exec == "eager";
  if (origins.asks("host-launch-us") && !eager) {
    bad_input("option", "{} is of --exec eager: with sink the graph is launched at once",
              origins.name("host-launch-us"));
  }
  if (origins.asks("prefetch-depth") && !options.images_per_second.has_value()) {
    bad_input("option", "{} needs --data-images-per-s: without it all batches are ready",
              origins.name("prefetch-depth"));
  }
  spec.host = {};
  spec.host.images_per_second = options.images_per_second;
  spec.host.prefetch = options.prefetch;
  if (!eager) return;
  spec.host.launch_is_assumed = !options.launch_us.has_value();
  spec.step.host_launch = options.launch_us.has_value() ? *options.launch_us * microsecond : study::assumed_host_launch;
  if (!origins.given("launch")) spec.step.launch = hccl::LaunchMode::op;
}

}  // namespace hcclsim::cli
