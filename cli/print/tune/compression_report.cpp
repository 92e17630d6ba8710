#include "cli/print/tune/compression_report.hpp"

#include <fmt/format.h>

#include <cmath>

#include "base/json.hpp"
#include "cli/terminal/output.hpp"
#include "study/platform/link_sources.hpp"

namespace hcclsim::cli {
namespace {

std::string saved_text(Seconds saved) {
  return fmt::format("{} {} ms", saved < 0 ? "loses" : "saves", milliseconds(std::abs(saved)));
}

std::string links_of(const study::BreakEven& one) {
  return one.kind.has_value() ? std::string(study::title_of(*one.kind)) : "all";
}

/// "x 2.34", or the speed of a link.
std::string speed_text(const study::BreakEven& one, double factor) {
  return one.kind.has_value() ? fmt::format("{:.3f} GB/s", one.used * factor / giga) : fmt::format("x {:.4g}", factor);
}

std::string verdict(const study::BreakEven& one) {
  if (one.at.has_value()) {
    return fmt::format("pays {} {}", one.slowest.saved() > 0 ? "below" : "above", speed_text(one, one.at->factor));
  }
  return fmt::format("{} from {} to {}", one.slowest.saved() > 0 ? "pays" : "never pays",
                     speed_text(one, one.slowest.factor), speed_text(one, one.fastest.factor));
}

Json trial_json(const study::CompressionTrial& trial) {
  return {{"factor", trial.factor},
          {"plain_step_s", trial.plain},
          {"compressed_step_s", trial.compressed},
          {"saved_s", trial.saved()}};
}

}  // namespace

std::string compression_text(const study::CompressionSearch& search) {
  const study::CompressionResult& result = search.result;
  std::string text = fmt::format("{}: {} x {}, {}; compression {}, contention {}\n", search.model, search.npus,
                                 search.npu, search.platform, result.text, on_off(search.hbm_contention));
  text += fmt::format("A compressed step sends {:.3f} in place of {:.3f} MB.\n",
                      static_cast<double>(result.bytes_after) / 1e6, static_cast<double>(result.bytes_before) / 1e6);
  text += fmt::format("hcom_parallel {}: gradients are reduced {} the backward pass.\n",
                      search.hcom_parallel ? "on" : "off", search.hcom_parallel ? "beside" : "behind");
  text +=
      fmt::format("At the speeds of the platform a step takes {} ms plain and {} ms compressed: {}.\n\n",
                  milliseconds(result.plain_step), milliseconds(result.compressed_step), saved_text(result.saved()));
  Table ends("<links|used|<compression|step there ms");
  for (const study::BreakEven& one : search.break_even) {
    ends.add_row(
        {links_of(one), speed_text(one, 1), verdict(one), one.at.has_value() ? milliseconds(one.at->compressed) : "–"});
  }
  text += ends.to_string();
  text += fmt::format("Found by bisection of simulated steps, to {} %; links of other kinds keep their speed.\n\n",
                      100 * study::break_even_tolerance);
  Table trials("speed of all links|plain ms|compressed ms|saved ms");
  for (const study::CompressionTrial& trial : search.trials) {
    trials.add_row({fmt::format("x {:.4g}", trial.factor), milliseconds(trial.plain), milliseconds(trial.compressed),
                    milliseconds(trial.saved())});
  }
  text += trials.to_string();
  for (const std::string& note : search.notes) text += fmt::format("Note: {}\n", note);
  return text;
}

std::string compression_json(const study::CompressionSearch& search) {
  const study::CompressionResult& result = search.result;
  Json json{{"format_version", 1},
            {"model", search.model},
            {"platform", search.platform},
            {"npu", search.npu},
            {"npus", search.npus},
            {"hbm_contention", on_off(search.hbm_contention)},
            {"hcom_parallel", search.hcom_parallel},
            {"compression", result.text},
            {"bytes_before", result.bytes_before},
            {"bytes_after", result.bytes_after},
            {"plain_step_s", result.plain_step},
            {"compressed_step_s", result.compressed_step},
            {"saved_s", result.saved()}};
  json["break_even"] = Json::array();
  for (const study::BreakEven& one : search.break_even) {
    json["break_even"].push_back(
        {{"links", one.kind.has_value() ? Json(std::string(name_of(*one.kind))) : Json("all")},
         {"used_Bps", one.kind.has_value() ? Json(one.used) : Json(nullptr)},
         {"bandwidth_Bps",
          one.kind.has_value() && one.at.has_value() ? Json(one.used * one.at->factor) : Json(nullptr)},
         {"at", one.at.has_value() ? trial_json(*one.at) : Json(nullptr)},
         {"slowest", trial_json(one.slowest)},
         {"fastest", trial_json(one.fastest)}});
  }
  json["trials"] = Json::array();
  for (const study::CompressionTrial& trial : search.trials) json["trials"].push_back(trial_json(trial));
  json["notes"] = search.notes;
  return json.dump(2) + '\n';
}

}  // namespace hcclsim::cli
