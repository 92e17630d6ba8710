#include "cli/print/run/host_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>

#include "cli/terminal/output.hpp"

namespace hcclsim::cli {
namespace {

double as_megabytes(Bytes bytes) { return static_cast<double>(bytes) / 1e6; }

std::string input_text(const study::HostFigures::Input& input, const hccl::IterationPoints& points) {
  const std::string ahead =
      input.prefetch == 0 ? "prepared when the step begins" : fmt::format("up to {} batches ahead", input.prefetch);
  std::string text =
      fmt::format("Input: {:g} samples/s for {} NPU{} of the server, {}: {} ms to prepare the {} of a step",
                  input.images_per_second, input.ranks, input.ranks == 1 ? "" : "s", ahead, milliseconds(input.batch),
                  input.samples);
  if (input.copied > 0) {
    text += fmt::format(", {} ms to copy their {:.2f} MB", milliseconds(input.copy), as_megabytes(input.copied));
  }
  text += "; ";
  if (points.data_aug_bound.has_value()) {
    text += fmt::format("Data Aug Bound {} ms, of it ", milliseconds(*points.data_aug_bound));
  }
  return text + fmt::format("{} ms without a batch\n", milliseconds(points.data_wait));
}

std::string issuing_text(const study::HostFigures::Issuing& issuing) {
  return fmt::format(
      "Eager: the host issues {} kernels and communication operators of the step in {} ms, {:g} us per kernel\n",
      issuing.calls, milliseconds(issuing.busy), issuing.launch / microsecond);
}

std::string checkpoints_text(const study::HostFigures::Checkpoints& written, std::size_t iterations) {
  // The first iteration is not part of the step's mean.
  const std::string mean =
      written.behind.back() == 1 ? ""
      : iterations == 2          ? "; the step above is iteration 2, with it"
                        : fmt::format("; the step above is the mean of iterations 2 to {}, with them", iterations);
  return fmt::format("Checkpoint of {:.2f} MB behind iteration{} {}: {} ms each{}\n", as_megabytes(written.bytes),
                     written.behind.size() == 1 ? "" : "s", fmt::join(written.behind, ", "), milliseconds(written.time),
                     mean);
}

}  // namespace

std::string host_lines(const RunReport& report) {
  const study::HostFigures& host = report.host;
  std::string text;
  if (host.input.has_value()) text += input_text(*host.input, report.view.iterations.back());
  if (host.issuing.has_value()) text += issuing_text(*host.issuing);
  if (host.checkpoints.has_value()) text += checkpoints_text(*host.checkpoints, report.view.iterations.size());
  return text;
}

void add_host_json(Json& json, const RunReport& report) {
  if (const auto& input = report.host.input; input.has_value()) {
    json["input_pipeline"] = {{"images_per_s", input->images_per_second},
                              {"npus_of_server", input->ranks},
                              {"prefetch_depth", input->prefetch},
                              {"samples", input->samples},
                              {"batch_s", input->batch},
                              {"copied_bytes", input->copied},
                              {"copy_s", input->copy},
                              {"data_wait_s", report.view.iterations.back().data_wait}};
  }
  if (const auto& issuing = report.host.issuing; issuing.has_value()) {
    json["eager"] = {{"host_launch_s", issuing->launch}, {"issued", issuing->calls}, {"issuing_s", issuing->busy}};
  }
  if (const auto& written = report.host.checkpoints; written.has_value()) {
    json["checkpoints"] = {
        {"bytes", written->bytes}, {"time_s", written->time}, {"behind_iterations", written->behind}};
  }
}

void add_host_settings(const study::RunSpec& spec, std::vector<std::pair<std::string, std::string>>& settings) {
  const study::HostSpec& host = spec.host;
  if (spec.step.host_launch.has_value()) {
    settings.emplace_back("exec", "eager");
    settings.emplace_back("host-launch-us", fmt::format("{:.6g}", *spec.step.host_launch / microsecond));
  }
  if (host.images_per_second.has_value()) {
    settings.emplace_back("data-images-per-s", fmt::format("{}", *host.images_per_second));
    settings.emplace_back("prefetch-depth", fmt::to_string(host.prefetch));
  }
  if (const auto& checkpoints = spec.step.checkpoints; checkpoints.has_value()) {
    settings.emplace_back("checkpoint-every", fmt::to_string(checkpoints->every));
    settings.emplace_back("checkpoint-bandwidth", fmt::format("{:g}GBps", checkpoints->bandwidth / giga));
  }
}

}  // namespace hcclsim::cli
