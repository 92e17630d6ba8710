#include "study/profile/import.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/csv.hpp"
#include "base/error.hpp"
#include "base/input_file.hpp"
#include "base/text.hpp"
#include "study/profile/iterations.hpp"

namespace hcclsim::study {
namespace {

bool is_json(std::string_view text) {
  const std::string_view content = trimmed(text);
  return content.starts_with('[') || content.starts_with('{');
}

/// The kind of a CSV file, or nothing.
std::string_view kind_of(const CsvFile& csv) {
  const auto has = [&](std::string_view name) { return !csv.all(name).empty(); };
  if (has("Op Name")) return "op_summary";
  if (has("Accelerator Core") || (has("Name") && has("Duration(us)"))) return "kernel_details";
  if (has("FP Start(us)") || has("Iteration ID")) return "step_trace";
  if (has("gradient_size(byte)")) return "gradient_summary";
  if (has("bytes") || has("ready_us") || has("ready_ms") || has("ready_s")) return "gradients";
  return {};
}

template <typename Part>
void keep(std::optional<Part>& place, Part part, const Profiles& profiles, const ProfileFile& added) {
  if (place.has_value()) {
    const auto same = std::find_if(profiles.files.begin(), profiles.files.end(), [&](const ProfileFile& file) {
      return file.kind == added.kind || (file.kind != "step_trace" && added.kind != "step_trace");
    });
    bad_input("profile", "{} ({}) and {} ({}): give one of them", same->file, same->kind, added.file, added.kind);
  }
  place = std::move(part);
}

void read_profile(const std::string& file, Profiles& profiles) {
  const std::string text = read_text_file(file, "profile");
  ProfileFile added{.file = file, .kind = "gradient_fusion"};
  if (is_json(text)) {
    if (text.find("\"Communication Bandwidth Info\"") != std::string::npos) {
      bad_input("profile", "{}: this is msprof's communication.json, from which `hcclsim calibrate` fits link speeds",
                file);
    }
    keep(profiles.record, parse_fusion_record(text, file), profiles, added);
    profiles.files.push_back(added);
    return;
  }
  const CsvFile csv(text, file, "profile");
  added.kind = kind_of(csv);
  if (added.kind == "op_summary" || added.kind == "kernel_details") {
    keep(profiles.kernels, parse_kernel_profile(text, file), profiles, added);
  } else if (added.kind == "step_trace") {
    keep(profiles.step_trace, parse_step_trace(text, file), profiles, added);
  } else if (added.kind == "gradient_summary") {
    keep(profiles.summary, parse_gradient_summary(text, file), profiles, added);
  } else if (added.kind == "gradients") {
    keep(profiles.gradients, models::parse_gradient_profile(text, file), profiles, added);
  } else {
    bad_input("profile",
              "{}: not a profile that is known by its columns '{}'; accepted: op_summary_*.csv, kernel_details.csv, "
              "step_trace_*.csv, gradient_summary.csv, *_gradient_fusion.json, a CSV of index or name, bytes, ready_us",
              file, printable(fmt::format("{}", fmt::join(csv.header(), ", "))));
  }
  profiles.files.push_back(added);
}

bool has_trace_nodes(const Profiles& profiles) {
  if (!profiles.kernels.has_value() || !profiles.summary.has_value()) return false;
  const std::string& node = profiles.summary->gradients.front().trace_node;
  const auto& kernels = profiles.kernels->kernels;
  return std::any_of(kernels.begin(), kernels.end(), [&](const MeasuredKernel& kernel) { return kernel.name == node; });
}

/// Two sources of the gradients' dates.
void check_sources(const Profiles& profiles) {
  std::vector<std::string> sources;
  for (const ProfileFile& file : profiles.files) {
    if (file.kind != "step_trace") sources.push_back(fmt::format("{} ({})", file.file, file.kind));
  }
  const bool own_dates = profiles.record.has_value() || profiles.gradients.has_value();
  if (own_dates && sources.size() > 1) {
    bad_input("profile", "{} both say when gradients are ready; give one of them", fmt::join(sources, " and "));
  }
}

Seconds kernels_time(const models::Program& program) {
  return std::accumulate(program.micro_batch().begin(), program.micro_batch().end(), Seconds{0},
                         [](Seconds sum, const models::Kernel& kernel) { return sum + kernel.duration; });
}

/// When the first gradient of a record is ready.
Seconds first_date(const FusionRecord& record, const Profiles& profiles, const models::Program& modelled,
                   std::vector<std::string>& notes) {
  const Seconds gaps = std::accumulate(record.gaps.begin(), record.gaps.end(), Seconds{0});
  if (profiles.step_trace.has_value()) {
    const Seconds compute = *profiles.step_trace->phases().forward_backward;
    if (compute < gaps) {
      bad_input("profile", "{}: its gradients take {:.3f} ms, but {} has {:.3f} ms from FP start to BP end",
                record.file, gaps * 1e3, profiles.step_trace->file, compute * 1e3);
    }
    return compute - gaps;
  }
  if (modelled.gradients.size() != record.bytes.size()) {
    notes.push_back(
        fmt::format("{}: dates count from the first gradient, since the record does not say when it is "
                    "ready and {} has {} gradients instead of {}; a step trace would tell",
                    record.file, modelled.title, modelled.gradients.size(), record.bytes.size()));
    return 0;
  }
  Seconds first = 0;
  for (std::uint32_t kernel = 0; kernel <= modelled.gradients.front().kernel; ++kernel) {
    first += modelled.kernels[kernel].duration;
  }
  notes.push_back(
      fmt::format("{}: the first gradient is ready after {:.3f} ms as in the cost model of {}, since the "
                  "record does not say when; a step trace would tell",
                  record.file, first * 1e3, modelled.title));
  return first;
}

/// The last gradient is ready at BP end, unless gradients and step trace are of different runs.
void compare_ends(const models::GradientProfile& gradients, const StepTrace& trace, std::vector<std::string>& notes) {
  constexpr double tolerance = 0.1;
  const Seconds last = gradients.gradients.back().ready_s;
  const Seconds compute = *trace.phases().forward_backward;
  if (std::abs(last - compute) <= tolerance * compute) return;
  notes.push_back(fmt::format(
      "{}: its last gradient is ready after {:.3f} ms, but {} has {:.3f} ms from FP start to BP end: are they "
      "of the same run, and the dates in the unit of their column?",
      gradients.file, last * 1e3, trace.file, compute * 1e3));
}

void require_same_sizes(const GradientSummary& summary, const models::Program& modelled) {
  const Bytes element = size_of(modelled.gradient_type());
  if (summary.gradients.size() != modelled.gradients.size()) {
    bad_input("profile",
              "{}: {} gradients, {} has {}; name the model, or give the op_summary of the same run, which dates them",
              summary.file, summary.gradients.size(), modelled.title, modelled.gradients.size());
  }
  for (std::size_t i = 0; i < summary.gradients.size(); ++i) {
    const Bytes bytes = modelled.gradients[i].elements * element;
    if (summary.gradients[i].bytes == bytes) continue;
    bad_input("profile", "{}:{}: gradient {} has {} bytes, {} of {} has {} as {}; is it the same network?",
              summary.file, summary.gradients[i].line, i, summary.gradients[i].bytes, modelled.gradients[i].name,
              modelled.title, bytes, name_of(modelled.gradient_type()));
  }
}

/// Scales forward and backward kernels so that they take `measured` in all.
double scale_kernels(models::Program& program, Seconds measured) {
  const double factor = measured / kernels_time(program);
  for (models::Kernel& kernel : program.micro_batch()) kernel.duration *= factor;
  return factor;
}

}  // namespace

std::string Profiles::gradients_file() const {
  if (record.has_value()) return record->file;
  if (gradients.has_value()) return gradients->file;
  return has_trace_nodes(*this) ? summary->file : "";
}

Profiles read_profiles(std::span<const std::string> files) {
  Profiles profiles;
  for (const std::string& file : files) read_profile(file, profiles);
  check_sources(profiles);
  if (profiles.kernels.has_value() && profiles.step_trace.has_value()) {
    number_iterations(*profiles.kernels, *profiles.step_trace);
  }
  return profiles;
}

models::Program imported_program(const Profiles& profiles, const models::Graph& graph, const device::Soc& soc,
                                 const device::ProgramOptions& options, ImportedProfile& imported,
                                 std::vector<std::string>& notes) {
  imported.files = profiles.files;
  const auto add_notes = [&imported](const std::vector<std::string>& more) {
    imported.notes.insert(imported.notes.end(), more.begin(), more.end());
  };
  if (profiles.step_trace.has_value()) {
    imported.measured = profiles.step_trace->phases();
    imported.iterations = static_cast<std::uint32_t>(profiles.step_trace->counted().size());
    add_notes(profiles.step_trace->notes);
  }
  if (profiles.kernels.has_value()) add_notes(profiles.kernels->notes);
  std::vector<std::string> of_model;
  models::Program modelled = make_program(graph, soc, options, of_model);
  if (!profiles.gradients_file().empty()) {
    const models::GradientProfile gradients =
        profiles.gradients.has_value() ? *profiles.gradients
        : profiles.record.has_value() ? dated(*profiles.record, first_date(*profiles.record, profiles, modelled, notes))
                                      : dated(*profiles.summary, *profiles.kernels);
    if (profiles.step_trace.has_value()) compare_ends(gradients, *profiles.step_trace, imported.notes);
    models::Program program = make_program(gradients, soc, options, notes);
    program.batch = graph.batch();
    if (!imported.measured.forward_backward.has_value()) imported.measured.forward_backward = kernels_time(program);
    return program;
  }
  notes.insert(notes.end(), of_model.begin(), of_model.end());
  if (profiles.summary.has_value()) require_same_sizes(*profiles.summary, modelled);
  if (profiles.kernels.has_value()) {
    imported.kernels = replace_kernels(*profiles.kernels, graph, modelled);
    add_notes(imported.kernels->notes);
    imported.measured = merged(imported.measured, imported.kernels->phases);
  } else if (profiles.step_trace.has_value()) {
    imported.scale = scale_kernels(modelled, *imported.measured.forward_backward);
  }
  return modelled;
}

}  // namespace hcclsim::study
