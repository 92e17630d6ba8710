#include "cli/print/run/numerics_report.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/json.hpp"
#include "cli/terminal/output.hpp"

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
  const auto address = [](std::optional<double>& figure) { return figure.has_value() ? &*figure : nullptr; };
  for (double* const figure : {&iteration.loss, &iteration.gradient_norm, address(iteration.compression_error),
                               address(iteration.plain_loss)}) {
    if (figure != nullptr && std::isnan(*figure)) *figure = std::numeric_limits<double>::quiet_NaN();
  }
  return iteration;
}

std::string head(const study::NumericsResult& report) {
  std::string text = fmt::format("Numerics: timed {} {}; computed {} {}", report.timed_shape, report.timed_type,
                                 report.computed_shape, report.computed_type);
  if (!report.too_large.empty()) text += fmt::format(" ({} needs more memory than the limit)", report.too_large);
  if (report.round != "none") text += fmt::format(" rounded to {}", report.round);
  const std::string_view over = report.mirrors_mean ? "the ranks that have the same of a parameter"
                                : report.stages > 1 ? "the replicas of a stage"
                                                    : "NPUs";
  text += fmt::format("; gradients are a {} over {}{}", report.gradients_mean ? "mean" : "sum", over,
                      report.mean_again ? ", divided by device_num besides" : "");
  if (report.micro_batches > 1) {
    text += fmt::format(", losses and gradients of {} micro-batches are added up", report.micro_batches);
  }
  if (!report.cast_back.empty()) {
    text += fmt::format("; gradients are rounded to {}, reduced in {} and rounded again", report.cast_back,
                        report.reduced_as);
  } else if (report.reduced_as != "fp32") {
    text += fmt::format("; gradients are reduced in {}", report.reduced_as);
  }
  text += fmt::format("\nData: {}{}; numeric seed {}", report.data, report.shuffle ? ", shuffled in every epoch" : "",
                      report.seed);
  if (report.broadcast) {
    text += fmt::format("; weights are those of {}, which the others receive before the first step",
                        report.stages > 1 ? "the first rank of each stage" : "rank 0");
  }
  if (!report.loaded.empty()) text += fmt::format("; goes on from {}", report.loaded);
  text += '\n';
  if (!report.compression.empty()) text += fmt::format("Gradients are reduced by {}\n", report.compression);
  if (!report.changed_settings.empty()) {
    text += fmt::format("Changed since it was saved: {}\n", fmt::join(report.changed_settings, ", "));
  }
  return text;
}

/// A loss in the table: six decimals, unless training has gone astray and it is huge.
std::string loss_text(double loss) {
  constexpr double huge = 1e6;
  return loss >= huge ? fmt::format("{:.6g}", loss) : fmt::format("{:.6f}", loss);
}

std::string_view update_text(const study::NumericsIteration& iteration) {
  if (iteration.skipped) return "skipped";
  if (!std::isfinite(iteration.loss)) return "diverged";
  return iteration.overflow ? "overflow" : "done";
}

std::vector<std::string> row(const study::NumericsIteration& iteration) {
  std::vector<std::string> cells{fmt::format("{}", iteration.iteration),
                                 loss_text(iteration.loss),
                                 fmt::format("{:.2f}", iteration.accuracy * 100),
                                 fmt::format("{:.6g}", iteration.gradient_norm),
                                 fmt::format("{:.6g}", iteration.learning_rate),
                                 iteration.loss_scale.has_value() ? fmt::format("{:g}", *iteration.loss_scale) : "–",
                                 std::string(update_text(iteration)),
                                 fmt::format("{:.3f}", iteration.step_time * 1e3)};
  if (iteration.plain_loss.has_value()) cells.insert(cells.begin() + 2, loss_text(*iteration.plain_loss));
  if (iteration.compression_error.has_value()) cells.push_back(fmt::format("{:.4g}", *iteration.compression_error));
  return cells;
}

/// Of training steps like this one. Rows are printed as they come.
Table step_table(const study::NumericsIteration& step) {
  std::vector<Table::Column> columns{{"iteration"},
                                     {.title = "loss", .least_width = 8},
                                     {"accuracy %"},
                                     {"gradient norm"},
                                     {"learning rate"},
                                     {"loss scale"},
                                     {.title = "update", .align = Table::Align::left, .least_width = 8},
                                     {"step ms"}};
  if (step.plain_loss.has_value())
    columns.insert(columns.begin() + 2, Table::Column{.title = "plain loss", .least_width = 8});
  if (step.compression_error.has_value()) columns.push_back({"error of mean"});
  return Table(std::move(columns));
}

/// Whether the table has a row of a step, though it may not be the last one.
bool is_shown(std::size_t done, std::size_t total) {
  return done == 1 || done == total || done % row_distance(total) == 0;
}

/// How training ended, where that is not with the last step.
std::string ending(const study::NumericsResult& report) {
  const std::size_t count = report.iterations.size();
  std::string text;
  if (!report.failure.empty()) {
    text = fmt::format("Ended by an error after {} of {} iterations: {}\n", count, report.requested, report.failure);
  } else if (count < report.requested) {
    text = fmt::format("Interrupted after {} of {} iterations.\n", count, report.requested);
  }
  if (report.diverged.has_value()) text += fmt::format("Diverged: {}.\n", sentence_of(*report.diverged));
  return text;
}

/// Dynamic loss scaling that begins too high leaves out the first updates.
std::string skipped_begin(const study::NumericsResult& report) {
  const auto& steps = report.iterations;
  const auto first = std::find_if(steps.begin(), steps.end(), [](const auto& step) { return !step.skipped; });
  if (first == steps.begin()) return {};
  const auto skipped = first - steps.begin();
  const double highest = steps.front().loss_scale.value_or(1);
  if (first == steps.end()) {
    return fmt::format(
        "All {} updates were skipped: the loss scale began at {:g} and is still too high, or gradients "
        "are not finite at any; --loss-scale dynamic:INITIAL begins lower.\n",
        skipped, highest);
  }
  return fmt::format(
      "The first {} updates were skipped while the loss scale came down from {:g} to {:g}; --loss-scale "
      "dynamic:{:g} begins there.\n",
      skipped, highest, first->loss_scale.value_or(1), first->loss_scale.value_or(1));
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
        "additions), worst difference/bound {:.3g}; {} of {} elements vanished{}{}.\n",
        error.iteration,
        fmt::format("{}{}", report.gradients_mean && !report.mirrors_mean ? "mean" : "sum",
                    report.mean_again ? ", divided by device_num" : ""),
        error.largest, error.bound, error.additions, error.worst_ratio, with_thousands(error.vanished),
        with_thousands(error.elements),
        error.overflowed > 0 ? fmt::format(", {} overflowed and are not compared", with_thousands(error.overflowed))
                             : "",
        error.not_numbers > 0
            ? fmt::format(", {} were NaN before the reduction and are not compared", with_thousands(error.not_numbers))
            : "");
    if (error.elements < error.all_elements) {
      text += fmt::format("Compared was a sample, {} of {} elements; --check-reductions all compares all.\n",
                          with_thousands(error.elements), with_thousands(error.all_elements));
    }
  }
  return text;
}

std::string checkpoint_text(const study::NumericsResult& report) {
  std::string text;
  if (!report.saved.empty()) {
    const bool last = report.saved_iteration == report.iterations.back().iteration;
    text += fmt::format("Checkpoint: {}{}\n", report.saved,
                        last ? "" : fmt::format(", of iteration {}", report.saved_iteration));
  }
  if (!report.saved_gradients.empty()) {
    text += fmt::format("Gradients of iteration {}: {}\n", report.iterations.back().iteration, report.saved_gradients);
  }
  if (report.save_refused) text += "Checkpoint not written, for training has diverged; --save-diverged writes it.\n";
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
  Json json{{"iteration", iteration.iteration},
            {"loss", iteration.loss},
            {"accuracy", iteration.accuracy},
            {"gradient_norm", iteration.gradient_norm},
            {"learning_rate", iteration.learning_rate},
            {"loss_scale", iteration.loss_scale.has_value() ? Json(*iteration.loss_scale) : Json(nullptr)},
            {"overflow", iteration.overflow},
            {"skipped", iteration.skipped},
            {"step_time_s", iteration.step_time}};
  if (iteration.compression_error.has_value()) json["compression_error"] = *iteration.compression_error;
  if (iteration.plain_loss.has_value()) json["plain_loss"] = *iteration.plain_loss;
  return json;
}

Json sample_json(const study::GradientSampleLine& sample) {
  return {{"parameter", sample.parameter}, {"element", sample.element},     {"gradient", sample.gradient},
          {"quotient", sample.quotient},   {"tolerance", sample.tolerance}, {"verdict", sample.verdict}};
}

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

}  // namespace

std::string numerics_begin_text(const study::NumericsResult& report) { return head(report) + gradient_samples(report); }

std::string step_text(const study::NumericsIteration& step, std::size_t done, std::size_t total) {
  if (!is_shown(done, total)) return {};
  const Table table = step_table(step);
  return (done == 1 ? table.titles() : "") + table.row(row(printable(step)));
}

std::string numerics_end_text(const study::NumericsResult& report) {
  const std::size_t count = report.iterations.size();
  std::string text;
  if (count > 0 && !is_shown(count, report.requested))
    text = step_table(report.iterations.back()).row(row(printable(report.iterations.back())));
  if (count > 0 && row_distance(report.requested) > 1) {
    text += fmt::format("({} iterations, not all shown: --format csv)\n", count);
  }
  for (const std::string& line : report.compression_log) text += fmt::format("Hook: {}\n", line);
  return text + ending(report) + skipped_begin(report) + exactness(report) + checkpoint_text(report);
}

std::string numerics_text(const study::NumericsResult& report) {
  std::string text = numerics_begin_text(report);
  for (std::size_t i = 0; i < report.iterations.size(); ++i) {
    text += step_text(report.iterations[i], i + 1, report.requested);
  }
  return text + numerics_end_text(report);
}

Json numerics_json(const study::NumericsResult& report) {
  Json json{{"timed_shape", report.timed_shape},
            {"timed_type", report.timed_type},
            {"computed_shape", report.computed_shape},
            {"too_large_shape", text_or_null(report.too_large)},
            {"dtype", report.computed_type},
            {"round", report.round},
            {"data", report.data},
            {"shuffle", report.shuffle},
            {"seed", report.seed},
            {"gradients_mean", report.gradients_mean},
            {"micro_batches", report.micro_batches},
            {"loaded", text_or_null(report.loaded)},
            {"changed_settings", report.changed_settings},
            {"saved", text_or_null(report.saved)},
            {"saved_iteration", report.saved.empty() ? Json(nullptr) : Json(report.saved_iteration)},
            {"save_refused", report.save_refused},
            {"failure", text_or_null(report.failure)},
            {"diverged_iteration", report.diverged.has_value() ? Json(report.diverged->iteration) : Json(nullptr)},
            {"requested_iterations", report.requested}};
  if (!report.compression.empty()) {
    json["compression"] = {{"settings", report.compression}, {"log", report.compression_log}};
  }
  if (!report.saved_gradients.empty()) json["saved_gradients"] = report.saved_gradients;
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
    json["gradient_error"] = {
        {"iteration", error.iteration},      {"largest", error.largest},       {"bound", error.bound},
        {"worst_ratio", error.worst_ratio},  {"additions", error.additions},   {"elements", error.elements},
        {"vanished", error.vanished},        {"overflowed", error.overflowed}, {"not_numbers", error.not_numbers},
        {"all_elements", error.all_elements}};
  }
  json["gradient_check"] = Json::array();
  for (const study::GradientSampleLine& sample : report.gradient_samples) {
    json["gradient_check"].push_back(sample_json(sample));
  }
  return json;
}

std::string csv_titles(const study::NumericsResult& report) {
  return fmt::format(
      "iteration,loss,accuracy,gradient_norm,learning_rate,loss_scale,overflow,skipped,step_time_s,timed_shape,timed_"
      "type,computed_shape,computed_type{}\n",
      report.compression.empty() ? "" : ",compression_error,plain_loss");
}

std::string csv_row(const study::NumericsResult& report, const study::NumericsIteration& step) {
  const study::NumericsIteration iteration = printable(step);
  const std::string scale = iteration.loss_scale.has_value() ? fmt::format("{}", *iteration.loss_scale) : "";
  const auto number = [](const std::optional<double>& value) {
    return value.has_value() ? fmt::format(",{}", *value) : std::string(",");
  };
  const std::string compression =
      report.compression.empty() ? "" : number(iteration.compression_error) + number(iteration.plain_loss);
  return fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{}{}\n", iteration.iteration, iteration.loss,
                     iteration.accuracy, iteration.gradient_norm, iteration.learning_rate, scale,
                     iteration.overflow ? 1 : 0, iteration.skipped ? 1 : 0, iteration.step_time, report.timed_shape,
                     report.timed_type, report.computed_shape, report.computed_type, compression);
}

std::string numerics_csv(const study::NumericsResult& report) {
  std::string text = csv_titles(report);
  for (const study::NumericsIteration& step : report.iterations) text += csv_row(report, step);
  return text;
}

}  // namespace hcclsim::cli
