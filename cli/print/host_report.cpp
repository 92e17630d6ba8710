#include "cli/print/host_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>

namespace hcclsim::cli {
namespace {

double ms(Seconds time) { return time * 1e3; }
double megabytes(Bytes bytes) { return static_cast<double>(bytes) / 1e6; }

std::string input_text(const study::HostFigures::Input& input, const hccl::IterationPoints& points) {
  const std::string ahead =
      input.prefetch == 0 ? "prepared when the step begins" : fmt::format("up to {} batches ahead", input.prefetch);
  const std::string copy =
      input.copied == 0 ? ""
                        : fmt::format(", {:.3f} ms to copy its {:.2f} MB", ms(input.copy), megabytes(input.copied));
  const std::string bound = points.data_aug_bound.has_value()
                                ? fmt::format("Data Aug Bound {:.3f} ms, of it ", ms(*points.data_aug_bound))
                                : "";
  return fmt::format(
      "Input: {:g} images/s for {} NPU{} of the server, {}: {:.3f} ms to prepare the {} of a step{}; "
      "{}{:.3f} ms without a batch\n",
      input.images_per_second, input.ranks, input.ranks == 1 ? "" : "s", ahead, ms(input.batch), input.samples, copy,
      bound, ms(points.data_wait));
}

std::string issuing_text(const study::HostFigures::Issuing& issuing) {
  return fmt::format(
      "Eager: the host issues {} kernels and communication operators of the step in {:.3f} ms, {:g} us per kernel\n",
      issuing.calls, ms(issuing.busy), issuing.launch / microsecond);
}

std::string checkpoints_text(const study::HostFigures::Checkpoints& written, std::size_t iterations) {
  std::string mean;
  if (iterations > 1) {
    mean = fmt::format("; the step above is the mean of iterations 2 to {}, checkpoints included", iterations);
  }
  return fmt::format("Checkpoint of {:.2f} MB behind iteration{} {}: {:.3f} ms each{}\n", megabytes(written.bytes),
                     written.behind.size() == 1 ? "" : "s", fmt::join(written.behind, ", "), ms(written.time), mean);
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

void add_host_settings(const study::HostSpec& host, std::vector<std::pair<std::string, std::string>>& settings) {
  if (host.launch.has_value()) {
    settings.emplace_back("exec", "eager");
    settings.emplace_back("host-launch-us", fmt::format("{:.6g}", *host.launch / microsecond));
  }
  if (host.images_per_second.has_value()) {
    settings.emplace_back("data-images-per-s", fmt::format("{}", *host.images_per_second));
    settings.emplace_back("prefetch-depth", fmt::to_string(host.prefetch));
  }
  if (host.checkpoints.has_value()) {
    settings.emplace_back("checkpoint-every", fmt::to_string(host.checkpoints->every));
    settings.emplace_back("checkpoint-bandwidth", fmt::format("{}", host.checkpoints->bandwidth));
  }
}

}  // namespace hcclsim::cli
