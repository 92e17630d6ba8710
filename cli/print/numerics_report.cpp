#include "cli/print/numerics_report.hpp"

#include <fmt/format.h>

#include <cmath>
#include <iterator>
#include <limits>

#include "base/json.hpp"
#include "cli/print/output.hpp"

namespace hcclsim::cli {
namespace {

/// More iterations than this are not all shown; JSON and CSV have them all.
constexpr std::size_t most_steps_shown = 40;

/// The distance of the iterations that are shown: the smallest of 1, 2, 5, 10, 20, … that does not fill more than the
/// rows.
std::size_t row_distance(std::size_t iterations) {
  std::size_t decade = 1;
  while (true) {
    for (const std::size_t digit : {1, 2, 5}) {
      if (iterations <= decade * digit * most_steps_shown) return decade * digit;
    }
    decade *= 10;
  }
}

/// Figures as they are printed: the sign of what is not a number says nothing, and differs between processors.
study::NumericsIteration printable(study::NumericsIteration iteration) {
  for (double* const figure : {&iteration.loss, &iteration.gradient_norm}) {
    if (std::isnan(*figure)) *figure = std::numeric_limits<double>::quiet_NaN();
  }
  return iteration;
}

std::string head(const study::NumericsResult& report) {
  std::string text = fmt::format("Numerics: timed {} {}; computed {} {}", report.timed_shape, report.timed_type,
                                 report.computed_shape, report.computed_type);
  if (report.round != "none") text += fmt::format(" rounded to {}", report.round);
  text +=
      fmt::format("; gradients are a {} over NPUs\nData: {}{}; numeric seed {}", report.gradients_mean ? "mean" : "sum",
                  report.data, report.shuffle ? ", shuffled in every epoch" : "", report.seed);
  if (!report.loaded.empty()) text += fmt::format("; goes on from {}", report.loaded);
  return text + '\n';
}

/// A loss in the table: six decimals, unless training has gone astray and it is huge.
std::string loss_text(double loss) {
  constexpr double huge = 1e6;
  return loss >= huge ? fmt::format("{:.6g}", loss) : fmt::format("{:.6f}", loss);
}

std::string_view update_text(const study::NumericsIteration& iteration) {
  if (iteration.skipped) return "skipped";
  return iteration.overflow ? "overflow" : "done";
}

std::vector<std::string> row(const study::NumericsIteration& iteration) {
  return {fmt::format("{}", iteration.iteration),
          loss_text(iteration.loss),
          fmt::format("{:.2f}", iteration.accuracy * 100),
          fmt::format("{:.6g}", iteration.gradient_norm),
          fmt::format("{:.6g}", iteration.learning_rate),
          iteration.loss_scale.has_value() ? fmt::format("{:g}", *iteration.loss_scale) : "–",
          std::string(update_text(iteration)),
          fmt::format("{:.3f}", iteration.step_time * 1e3)};
}

std::string iteration_table(const study::NumericsResult& report) {
  const std::size_t count = report.iterations.size();
  std::string interrupted =
      count < report.requested ? fmt::format("Interrupted after {} of {} iterations.\n", count, report.requested) : "";
  if (count == 0) return interrupted;
  Table table({{"iteration"},
               {"loss"},
               {"accuracy %"},
               {"gradient norm"},
               {"learning rate"},
               {"loss scale"},
               {"update", Table::Align::left},
               {"step ms"}});
  const std::size_t distance = row_distance(count);
  for (std::size_t i = 0; i < count; ++i) {
    if (i == 0 || i + 1 == count || (i + 1) % distance == 0) table.add_row(row(printable(report.iterations[i])));
  }
  std::string text = table.to_string();
  if (distance > 1) text += fmt::format("({} iterations, not all shown: --format csv)\n", count);
  return text + interrupted;
}

std::string exactness(const study::NumericsResult& report) {
  std::string text;
  if (report.replicas.has_value()) {
    text += fmt::format("Replicas differ in {} bits (largest difference {:.3g}).\n", report.replicas->bits,
                        report.replicas->largest);
  }
  if (report.gradient_error.has_value()) {
    const study::GradientError& error = *report.gradient_error;
    text += fmt::format(
        "Reduced gradient of iteration {} against the fp64 {}: largest difference {:.3g}, bound there {:.3g} ({} "
        "additions), worst difference/bound {:.3g}; {} of {} elements vanished{}.\n",
        error.iteration, report.gradients_mean ? "mean" : "sum", error.largest, error.bound, error.additions,
        error.worst_ratio, with_thousands(error.vanished), with_thousands(error.elements),
        error.overflowed > 0 ? fmt::format(", {} overflowed and are not compared", with_thousands(error.overflowed))
                             : "");
  }
  return text;
}

std::string gradient_samples(const study::NumericsResult& report) {
  if (report.gradient_samples.empty()) return {};
  using Align = Table::Align;
  Table table({{"gradient check", Align::left},
               {"element"},
               {"gradient"},
               {"finite difference"},
               {"tolerance"},
               {"verdict", Align::left}});
  for (const study::GradientSampleLine& sample : report.gradient_samples) {
    table.add_row({sample.parameter, fmt::format("{}", sample.element), fmt::format("{:.6g}", sample.gradient),
                   fmt::format("{:.6g}", sample.quotient), fmt::format("{:.1g}", sample.tolerance), sample.verdict});
  }
  return table.to_string();
}

Json iteration_json(const study::NumericsIteration& iteration) {
  return {{"iteration", iteration.iteration},
          {"loss", iteration.loss},
          {"accuracy", iteration.accuracy},
          {"gradient_norm", iteration.gradient_norm},
          {"learning_rate", iteration.learning_rate},
          {"loss_scale", iteration.loss_scale.has_value() ? Json(*iteration.loss_scale) : Json(nullptr)},
          {"overflow", iteration.overflow},
          {"skipped", iteration.skipped},
          {"step_time_s", iteration.step_time}};
}

Json sample_json(const study::GradientSampleLine& sample) {
  return {{"parameter", sample.parameter}, {"element", sample.element},     {"gradient", sample.gradient},
          {"quotient", sample.quotient},   {"tolerance", sample.tolerance}, {"verdict", sample.verdict}};
}

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

}  // namespace

std::string numerics_text(const study::NumericsResult& report) {
  std::string text = head(report) + gradient_samples(report) + iteration_table(report) + exactness(report);
  if (!report.saved.empty()) text += fmt::format("Checkpoint: {}\n", report.saved);
  return text;
}

Json numerics_json(const study::NumericsResult& report) {
  Json json{{"timed_shape", report.timed_shape},
            {"timed_type", report.timed_type},
            {"computed_shape", report.computed_shape},
            {"dtype", report.computed_type},
            {"round", report.round},
            {"data", report.data},
            {"shuffle", report.shuffle},
            {"seed", report.seed},
            {"gradients_mean", report.gradients_mean},
            {"loaded", text_or_null(report.loaded)},
            {"saved", text_or_null(report.saved)},
            {"requested_iterations", report.requested}};
  json["iterations"] = Json::array();
  for (const study::NumericsIteration& iteration : report.iterations)
    json["iterations"].push_back(iteration_json(iteration));
  json["replica_difference"] = nullptr;
  if (report.replicas.has_value()) {
    json["replica_difference"] = {{"bits", report.replicas->bits}, {"largest", report.replicas->largest}};
  }
  json["gradient_error"] = nullptr;
  if (report.gradient_error.has_value()) {
    const study::GradientError& error = *report.gradient_error;
    json["gradient_error"] = {{"iteration", error.iteration}, {"largest", error.largest},
                              {"bound", error.bound},         {"worst_ratio", error.worst_ratio},
                              {"additions", error.additions}, {"elements", error.elements},
                              {"vanished", error.vanished},   {"overflowed", error.overflowed}};
  }
  json["gradient_check"] = Json::array();
  for (const study::GradientSampleLine& sample : report.gradient_samples) {
    json["gradient_check"].push_back(sample_json(sample));
  }
  return json;
}

std::string numerics_csv(const study::NumericsResult& report) {
  std::string text =
      "iteration,loss,accuracy,gradient_norm,learning_rate,loss_scale,overflow,skipped,step_time_s,timed_shape,timed_"
      "type,computed_shape,computed_type\n";
  for (const study::NumericsIteration& done : report.iterations) {
    const study::NumericsIteration iteration = printable(done);
    const std::string scale = iteration.loss_scale.has_value() ? fmt::format("{}", *iteration.loss_scale) : "";
    fmt::format_to(std::back_inserter(text), "{},{},{},{},{},{},{},{},{},{},{},{},{}\n", iteration.iteration,
                   iteration.loss, iteration.accuracy, iteration.gradient_norm, iteration.learning_rate, scale,
                   iteration.overflow ? 1 : 0, iteration.skipped ? 1 : 0, iteration.step_time, report.timed_shape,
                   report.timed_type, report.computed_shape, report.computed_type);
  }
  return text;
}

}  // namespace hcclsim::cli
