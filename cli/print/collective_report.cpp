#include "cli/print/collective_report.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "base/json.hpp"
#include "cli/draw/svg_chart.hpp"
#include "cli/options/hccl_options.hpp"
#include "cli/print/explanation.hpp"
#include "cli/print/faults.hpp"
#include "cli/print/folded.hpp"
#include "cli/print/link_report.hpp"
#include "cli/print/run/routing.hpp"
#include "cli/print/run/uncertainty.hpp"
#include "cli/terminal/output.hpp"

namespace hcclsim::cli {
namespace {

/// In bytes per second, to the digit that hccl_test prints: events tell it the time of all calls as a float.
double speed_of_events(const MeasurementRow& row, std::uint32_t iterations) {
  if (!(row.time > 0)) return 0;
  const float all_us = static_cast<float>(row.time * iterations * 1e3) * 1000;
  const double payload = std::round(row.speed.algbw * row.time);
  return payload / (static_cast<double>(all_us) / iterations) * 1e6;
}

/// Columns behind those of hccl_test.
std::string extended_cells(const MeasurementRow& row) {
  const std::string formula =
      row.formula.has_value() ? fmt::format("{} = {}", microseconds(*row.formula, 2), row.formula_text) : "none";
  return fmt::format(" | {:<20.5f} | {:<12} | {:<26} | {:<24} | {}", row.speed.busbw / giga, microseconds(row.bound, 2),
                     row.algorithm, row.limited_by, formula);
}

/// How the results were checked: sizes on real data, sizes proved.
std::string check_line(const Measurement& measurement) {
  std::string lines;
  for (const bool proved : {false, true}) {
    std::vector<Bytes> sizes;
    for (const MeasurementRow& row : measurement.rows) {
      if (row.check.has_value() && row.check->proved == proved) sizes.push_back(row.size);
    }
    if (sizes.empty()) continue;
    lines += fmt::format("Check {}: {}\n",
                         proved ? "by proof for all data (L0 to L4), above 64 MiB in total" : "on real data",
                         sizes.size() == 1 ? fmt::format("{} bytes", sizes.front())
                                           : fmt::format("{} to {} bytes", sizes.front(), sizes.back()));
  }
  for (const MeasurementRow& row : measurement.rows) {
    if (row.check.has_value() && !row.check->ok) lines += fmt::format("{} bytes: {}\n", row.size, row.check->problem);
  }
  return lines;
}

/// The ranges of the least and the largest size, or what each assumption does to all of them.
std::string uncertainty_lines(const Measurement& measurement, bool explained) {
  std::string lines;
  for (std::size_t i = 0; i < measurement.rows.size(); ++i) {
    const MeasurementRow& row = measurement.rows[i];
    if (!row.uncertainty.has_value()) continue;
    if (explained) {
      lines += fmt::format("Range of {} bytes over what is assumed:\n{}", row.size, effects_table(*row.uncertainty));
    } else if (i == 0 || i + 1 == measurement.rows.size()) {
      lines += fmt::format("Range over what is assumed: {} bytes {}..{} us\n", row.size,
                           microseconds(row.uncertainty->fastest, 2), microseconds(row.uncertainty->slowest, 2));
    }
  }
  return lines;
}

std::string routing_lines(const Measurement& measurement) {
  std::string lines;
  for (const MeasurementRow& row : measurement.rows) {
    if (!row.routing.has_value()) continue;
    lines += fmt::format("Hashed ways: {} bytes {}\n", row.size,
                         routing_text(*row.routing, [](Seconds time) { return microseconds(time, 2) + " us"; }));
  }
  return lines;
}

Json json_of(const MeasurementRow& row, const Measurement& measurement, const MeasureSpec& spec,
             const std::string& op) {
  Json json{{"op", op},
            {"ranks", measurement.ranks},
            {"bytes", row.size},
            {"dtype", name_of(spec.request.operation.type)},
            {"time_s", row.time},
            {"algbw_Bps", row.speed.algbw},
            {"busbw_Bps", row.speed.busbw},
            {"algorithm", row.algorithm},
            {"formula_s", nullptr},
            {"bound_s", row.bound},
            {"limited_by", row.limited_by},
            {"check", check_word(row)}};
  if (row.formula.has_value()) json["formula_s"] = *row.formula;
  if (!row.folded.empty()) json["folded"] = folded_json(row.folded);
  if (row.uncertainty.has_value()) json["uncertainty"] = uncertainty_json(*row.uncertainty);
  if (row.routing.has_value()) json["routing"] = routing_json(*row.routing);
  return json;
}

}  // namespace

std::string check_word(const MeasurementRow& row) {
  if (!row.check.has_value()) return "NULL";
  return row.check->ok ? "success" : "failed";
}

std::string collective_text(const Measurement& measurement, const MeasureSpec& spec, bool extended) {
  // The widths are hccl_test's.
  std::string text = fmt::format("{:<15} | {:<12} | {:<18} | {}",
                                 "data_size(Bytes):", "aveg_time(us):", "alg_bandwidth(GB/s):", "check_result:");
  if (extended) {
    text += fmt::format(" | {:<20} | {:<12} | {:<26} | {:<24} | {}",
                        "bus_bandwidth(GB/s):", "bound(us):", "algorithm:", "limited_by:", "formula(us):");
  }
  text += '\n';
  for (const MeasurementRow& row : measurement.rows) {
    const std::string check = check_word(row);
    text += fmt::format("{:<17} | {:<14} | {:<20.5f} | ", row.size, microseconds(row.time, 2),
                        speed_of_events(row, spec.iterations) / giga);
    text += extended ? fmt::format("{:<13}", check) + extended_cells(row) : check;
    text += '\n';
  }
  text += check_line(measurement) + uncertainty_lines(measurement, spec.explained_uncertainty) +
          routing_lines(measurement) + explanation_text(measurement.explanation);
  if (measurement.links.has_value()) {
    text += link_report_text(*measurement.links,
                             fmt::format("Busiest links of one call of {} bytes alone", measurement.rows.back().size));
  }
  return text + remarks_text(measurement.on.unmodelled, measurement.on.notes);
}

std::string collective_json(const Measurement& measurement, const MeasureSpec& spec, const std::string& op) {
  Json json{{"format_version", 2},
            {"platform", measurement.on.platform},
            {"npu", measurement.on.npu},
            {"launch", name_of(spec.request.launch)},
            {"warmups", spec.warmups},
            {"iterations", spec.iterations},
            {"method", spec.method()},
            {"rows", Json::array()},
            {"checked", {{"real_data", Json::array()}, {"proof", Json::array()}}}};
  if (!measurement.on.rank_table.empty()) json["rank_table"] = measurement.on.rank_table;
  for (const MeasurementRow& row : measurement.rows) {
    json["rows"].push_back(json_of(row, measurement, spec, op));
    if (row.check.has_value()) json["checked"][row.check->proved ? "proof" : "real_data"].push_back(row.size);
  }
  if (measurement.links.has_value()) add_links_json(json, *measurement.links);
  if (!measurement.explanation.empty()) json["explain"] = explanation_json(measurement.explanation);
  if (!measurement.on.unmodelled.empty()) json["not_modelled"] = measurement.on.unmodelled;
  if (!spec.faults.empty()) json["faults"] = faults_json(spec.faults);
  json["notes"] = measurement.on.notes;
  return json.dump(2) + '\n';
}

std::string collective_csv(const Measurement& measurement, const MeasureSpec& spec, const std::string& op) {
  if (measurement.links.has_value()) return link_csv_titles() + link_csv_rows(*measurement.links);
  std::string text =
      "op,ranks,bytes,dtype,time_us,algbw_GBps,busbw_GBps,algorithm,formula_us,bound_us,limited_by,check\n";
  for (const MeasurementRow& row : measurement.rows) {
    text += fmt::format("{},{},{},{},{:.3f},{:.6f},{:.6f},{},{},{:.3f},{},{}\n", op, measurement.ranks, row.size,
                        name_of(spec.request.operation.type), row.time / microsecond, row.speed.algbw / giga,
                        row.speed.busbw / giga, csv_field(row.algorithm),
                        row.formula.has_value() ? fmt::format("{:.3f}", *row.formula / microsecond) : "",
                        row.bound / microsecond, csv_field(row.limited_by), check_word(row));
  }
  return text;
}

std::string collective_plot(const Measurement& measurement, const std::string& op) {
  ChartSeries time{"simulated", {}};
  ChartSeries bound{"bound", {}};
  ChartSeries algbw{"algorithm bandwidth", {}};
  ChartSeries busbw{"bus bandwidth", {}};
  for (const MeasurementRow& row : measurement.rows) {
    if (row.size == 0) continue;  // the axes are logarithmic
    const auto size = static_cast<double>(row.size);
    time.points.emplace_back(size, row.time / microsecond);
    bound.points.emplace_back(size, row.bound / microsecond);
    algbw.points.emplace_back(size, row.speed.algbw / giga);
    busbw.points.emplace_back(size, row.speed.busbw / giga);
  }
  const std::string title =
      fmt::format("{} among {} x {} ({})", op, measurement.ranks, measurement.on.npu, measurement.on.platform);
  const LineChart times{.title = title,
                        .x_label = "size (bytes)",
                        .y_label = "time (us)",
                        .series = {time, bound},
                        .log_x = true,
                        .log_y = true};
  const LineChart bandwidths{
      .title = "", .x_label = "size (bytes)", .y_label = "bandwidth (GB/s)", .series = {algbw, busbw}, .log_x = true};
  return svg_line_charts({times, bandwidths});
}

}  // namespace hcclsim::cli
