#include "study/files/profile/import.hpp"

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
#include "study/files/profile/iterations.hpp"
#include "study/files/profile/profile_set.hpp"

namespace hcclsim::study {
namespace {

/// The text of a file, which must hold something.
std::string profile_text(const std::string& file) {
  std::string text = read_text_file(file, "profile");
  if (trimmed(text).empty()) bad_input("profile", "{}: the file is empty", file);
  return text;
}

/// Throws if the kernels of a step take another time than the rank has computed in it, by the other file of its
/// profile. Kernels of several streams may run at the same time, and some may be missing; units are a thousand apart.
void require_same_time(const KernelProfile& kernels, const StepTraceTime& times) {
  constexpr double far_off = 10;
  Seconds sum = 0;
  for (const MeasuredKernel& kernel : kernels.kernels) sum += kernel.communication ? 0 : kernel.duration;
  const Seconds measured = sum / kernels.iterations;
  const Seconds computing = times.phases.computing.value_or(measured);
  if (measured < far_off * computing && computing < far_off * measured) return;
  bad_input(
      "profile",
      "{}: its kernels take {:.3f} ms in a step, but {} has {:.3f} ms of Computing: are both of the same steps, and "
      "in microseconds?",
      kernels.file, measured * 1e3, times.file, computing * 1e3);
}

std::string_view without_byte_order_mark(std::string_view text) {
  constexpr std::string_view mark = "\xEF\xBB\xBF";
  return text.starts_with(mark) ? text.substr(mark.size()) : text;
}

bool is_json(std::string_view text) {
  const std::string_view content = trimmed(without_byte_order_mark(text));
  return content.starts_with('[') || content.starts_with('{');
}

/// The kind of a CSV file, or nothing.
std::string_view kind_of(const CsvFile& csv) {
  const auto has = [&](std::string_view name) { return !csv.all(name).empty(); };
  if (has("Op Name")) return "op_summary";
  if (has("Accelerator Core") || (has("Name") && has("Duration(us)"))) return "kernel_details";
  if (has("Communication(Not Overlapped)") || (has("Computing") && has("Free"))) return "step_trace_time";
  if (has("FP Start(us)") || has("Iteration ID")) return "step_trace";
  if (has("gradient_size(byte)")) return "gradient_summary";
  if (has("bytes") || has("ready_us") || has("ready_ms") || has("ready_s")) return "gradients";
  return {};
}

template <typename Part>
void keep(std::optional<Part>& place, Part part, const Profiles& profiles, const ProfileFile& added) {
  if (place.has_value()) {
    const auto same = std::find_if(profiles.files.begin(), profiles.files.end(),
                                   [&](const ProfileFile& file) { return file.kind == added.kind; });
    bad_input("profile", "{} ({}) and {} ({}): give one of them", same->file, same->kind, added.file, added.kind);
  }
  place = std::move(part);
}

void read_profile(const std::string& file, const std::string& model, Profiles& profiles) {
  const bool is_known = std::any_of(profiles.files.begin(), profiles.files.end(),
                                    [&](const ProfileFile& other) { return other.file == file; });
  if (is_known) bad_input("profile", "{} is given twice", file);
  const std::string text = profile_text(file);
  ProfileFile added{.file = file, .kind = "gradient_fusion"};
  if (is_json(text)) {
    if (text.find("\"Communication Bandwidth Info\"") != std::string::npos) {
      bad_input("profile", "{}: this is msprof's communication.json, from which `hcclsim calibrate` fits link speeds",
                file);
    }
    if (text.find("\"ph\"") != std::string::npos && text.find("\"ts\"") != std::string::npos) {
      bad_input("profile", "{}: this is a timeline; give the kernel_details.csv or op_summary_*.csv beside it", file);
    }
    keep(profiles.record, parse_fusion_record(without_byte_order_mark(text), file, model), profiles, added);
    profiles.files.push_back(added);
    return;
  }
  const CsvFile csv(text, file, "profile");
  added.kind = kind_of(csv);
  if (added.kind == "op_summary" || added.kind == "kernel_details") {
    profiles.kernels.push_back(parse_kernel_profile(text, file));
  } else if (added.kind == "step_trace") {
    profiles.step_traces.push_back(parse_step_trace(text, file));
  } else if (added.kind == "step_trace_time") {
    profiles.step_trace_times.push_back(parse_step_trace_time(text, file));
  } else if (added.kind == "gradient_summary") {
    keep(profiles.summary, parse_gradient_summary(text, file, model), profiles, added);
  } else if (added.kind == "gradients") {
    keep(profiles.gradients, models::parse_gradient_profile(text, file), profiles, added);
  } else {
    bad_input("profile",
              "{}: not a profile that is known by its columns '{}'; accepted: op_summary_*.csv, kernel_details.csv, "
              "step_trace_*.csv, step_trace_time.csv, gradient_summary.csv, *_gradient_fusion.json, a CSV of index or "
              "name, bytes, ready_us",
              file, printable(fmt::format("{}", fmt::join(csv.header(), ", "))));
  }
  profiles.files.push_back(added);
}

void read_profile_folder(const std::string& folder, const std::string& model, Profiles& profiles) {
  const ProfileSet set = find_profile_set(folder);
  const RankProfile& first = set.ranks.front();
  read_profile(first.kernels, model, profiles);
  if (first.step_trace_time.empty()) return;
  read_profile(first.step_trace_time, model, profiles);
  require_same_time(profiles.kernels.back(), profiles.step_trace_times.back());
}

bool has_trace_nodes(const Profiles& profiles) {
  if (profiles.kernels.empty() || !profiles.summary.has_value()) return false;
  const std::string& node = profiles.summary->gradients.front().trace_node;
  const auto& kernels = profiles.kernels.front().kernels;
  return std::any_of(kernels.begin(), kernels.end(), [&](const MeasuredKernel& kernel) { return kernel.name == node; });
}

/// Two sources of the gradients' dates.
void check_sources(const Profiles& profiles) {
  std::vector<std::string> sources;
  for (const ProfileFile& file : profiles.files) {
    const bool has_dates = !file.kind.starts_with("step_trace") && file.kind != "gradient_summary";
    if (has_dates) sources.push_back(fmt::format("{} ({})", file.file, file.kind));
  }
  const bool own_dates = profiles.record.has_value() || profiles.gradients.has_value();
  if (own_dates && sources.size() > 1) {
    bad_input("profile", "{} both say when gradients are ready; give one of them", fmt::join(sources, " and "));
  }
}

/// When the first gradient of a record is ready.
Seconds first_date(const FusionRecord& record, const Profiles& profiles, const models::Program& modelled,
                   std::vector<std::string>& notes) {
  const Seconds gaps = std::accumulate(record.gaps.begin(), record.gaps.end(), Seconds{0});
  if (!profiles.step_traces.empty()) {
    const StepTrace& trace = profiles.step_traces.front();
    const Seconds compute = *trace.phases().forward_backward;
    if (compute < gaps) {
      bad_input("profile", "{}: its gradients take {:.3f} ms, but {} has {:.3f} ms from FP start to BP end",
                record.file, gaps * 1e3, trace.file, compute * 1e3);
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

/// Where the sizes of a summary are not those of the file that counts.
std::vector<std::string> size_contradictions(const GradientSummary& summary, const models::GradientProfile& gradients) {
  if (summary.gradients.size() != gradients.gradients.size()) {
    return {fmt::format("{} gradients in {}, which counts, but {} in {}: are they of the same network?",
                        gradients.gradients.size(), gradients.file, summary.gradients.size(), summary.file)};
  }
  std::size_t count = 0;
  std::size_t first = 0;
  for (std::size_t i = summary.gradients.size(); i-- > 0;) {
    if (summary.gradients[i].bytes == gradients.gradients[i].bytes) continue;
    first = i;
    ++count;
  }
  if (count == 0) return {};
  return {
      fmt::format("gradient {} has {} bytes in {}, which counts, but {} in {}:{}; {} of {} sizes differ: are they of "
                  "the same network?",
                  first, gradients.gradients[first].bytes, gradients.file, summary.gradients[first].bytes, summary.file,
                  summary.gradients[first].line, count, summary.gradients.size())};
}

void require_same_sizes(const GradientSummary& summary, const models::Program& modelled) {
  if (summary.gradients.size() != modelled.gradients.size()) {
    bad_input("profile",
              "{}: {} gradients, {} has {}; name the model, or give the op_summary of the same run, which dates them",
              summary.file, summary.gradients.size(), modelled.title, modelled.gradients.size());
  }
  for (std::size_t i = 0; i < summary.gradients.size(); ++i) {
    const DataType type = modelled.gradients[i].dtype;
    const Bytes bytes = modelled.gradients[i].elements * size_of(type);
    if (summary.gradients[i].bytes == bytes) continue;
    bad_input("profile",
              "{}:{}: gradient {} has {} bytes, {} of {} has {} as {}; is it the same network, with rows in the order "
              "in which gradients are produced?",
              summary.file, summary.gradients[i].line, i, summary.gradients[i].bytes, modelled.gradients[i].name,
              modelled.title, bytes, name_of(type));
  }
}

/// Scales kernels so that they take `measured` in all.
double scale_kernels(std::span<models::Kernel> kernels, Seconds measured) {
  const Seconds modelled =
      std::accumulate(kernels.begin(), kernels.end(), Seconds{0},
                      [](Seconds sum, const models::Kernel& kernel) { return sum + kernel.duration; });
  const double factor = measured / modelled;
  for (models::Kernel& kernel : kernels) kernel.duration *= factor;
  return factor;
}

/// The kind of a file of the profiles.
std::string_view kind_of(const std::string& file, const Profiles& profiles) {
  return std::find_if(profiles.files.begin(), profiles.files.end(),
                      [&](const ProfileFile& other) { return other.file == file; })
      ->kind;
}

SimulationBasis basis_of(const KernelMatch& match) {
  return {.forward = match.forward.text(),
          .backward = match.backward.text(),
          .forward_backward = (match.forward + match.backward).text(),
          .update = match.update.text(),
          .step = (match.forward + match.backward + match.update).text()};
}

/// Makes the Program of a profile, and collects what the files say.
class Import {
 public:
  Import(const Profiles& profiles, const models::Graph& graph, std::uint32_t micro_batches, ImportedProfile& imported)
      : profiles_(profiles), graph_(graph), micro_batches_(micro_batches), imported_(imported) {
    imported_.files = profiles.files;
    for (const StepTrace& trace : profiles.step_traces) {
      add_notes(trace.notes);
      add_source(trace.file, static_cast<std::uint32_t>(trace.counted().size()), trace.phases());
    }
    if (!imported_.sources.empty()) imported_.iterations = imported_.sources.front().iterations;
    for (const KernelProfile& kernels : profiles.kernels) {
      add_notes(kernels.notes);
      if (micro_batches_ == 1 && !kernels.repeated.empty()) add_notes({kernels.repeated});
    }
    note_others(profiles.step_traces);
    note_others(profiles.kernels);
    note_others(profiles.step_trace_times);
  }

  /// A step of the model, with what was measured of it in the place of the cost model.
  models::Program of_model(models::Program program) {
    if (profiles_.summary.has_value()) {
      require_same_sizes(*profiles_.summary, program);
      imported_.notes.push_back(fmt::format(
          "{}: no times, only sizes: its rows are taken in the order in which gradients are produced; those of {} are "
          "the same",
          profiles_.summary->file, program.title));
    }
    const models::Program modelled = program;
    if (!profiles_.kernels.empty()) {
      imported_.kernels = micro_batches_ > 1
                              ? replace_durations(profiles_.kernels.front(), graph_, program, micro_batches_, false)
                              : replace_kernels(profiles_.kernels.front(), graph_, program);
      add_notes(imported_.kernels->notes);
      add_source(profiles_.kernels.front().file, imported_.kernels->iterations, imported_.kernels->phases);
      imported_.basis = basis_of(*imported_.kernels);
    }
    compare_kernels(modelled, 1);
    add_step_trace_times();
    if (profiles_.kernels.empty()) scale(program);
    return program;
  }

  /// A step of which the gradients were measured, and which the `modelled` one gives the rest.
  models::Program of_gradients(const models::GradientProfile& gradients, models::Program program,
                               const models::Program& modelled) {
    program.batch = graph_.batch();
    const std::string dates = "dates of the gradients";
    imported_.basis = {.forward = dates, .backward = dates, .forward_backward = dates, .step = dates};
    compare_kernels(modelled, 0);
    add_step_trace_times();
    if (profiles_.summary.has_value() && profiles_.summary->file != gradients.file) {
      add_notes(size_contradictions(*profiles_.summary, gradients));
    }
    // A record's dates begin anywhere: its last one is that of the step trace, or not known.
    if (!profiles_.record.has_value()) {
      add_source(gradients.file, 0, {.forward_backward = gradients.gradients.back().ready_s});
    } else if (profiles_.step_traces.empty()) {
      imported_.basis.forward_backward = imported_.basis.step = "gaps between gradients, begin as in the cost model";
    }
    return program;
  }

  void finish() {
    for (const MeasuredPhases& source : imported_.sources) {
      imported_.measured = merged(imported_.measured, source.phases);
    }
    add_notes(contradictions(imported_.sources));
  }

 private:
  void add_notes(const std::vector<std::string>& more) {
    imported_.notes.insert(imported_.notes.end(), more.begin(), more.end());
  }

  void add_source(const std::string& file, std::uint32_t iterations, const Phases& phases) {
    imported_.sources.push_back({file, kind_of(file, profiles_), iterations, phases});
  }

  /// Says which of the files counts.
  template <typename Part>
  void note_others(const std::vector<Part>& parts) {
    for (std::size_t i = 1; i < parts.size(); ++i) {
      imported_.notes.push_back(
          fmt::format("{} counts; {} is only compared with it", parts.front().file, parts[i].file));
    }
  }

  /// What the files of kernels say of the phases, from `first` on.
  void compare_kernels(const models::Program& modelled, std::size_t first) {
    for (std::size_t i = first; i < profiles_.kernels.size(); ++i) {
      models::Program copy = modelled;
      const KernelMatch match = match_kernels(profiles_.kernels[i], graph_, copy);
      add_source(profiles_.kernels[i].file, match.iterations, match.phases);
    }
  }

  void add_step_trace_times() {
    for (const StepTraceTime& times : profiles_.step_trace_times) {
      add_notes(times.notes);
      add_source(times.file, times.steps, times.phases);
    }
  }

  /// Scales the cost model to what was measured of the whole step.
  void scale(models::Program& program) {
    if (!profiles_.step_traces.empty()) {
      imported_.scale = scale_kernels(program.micro_batch(), *profiles_.step_traces.front().phases().forward_backward);
      const std::string scaled = "cost model, scaled to FP+BP";
      imported_.basis = {.forward = scaled, .backward = scaled, .forward_backward = scaled};
      imported_.basis.step = scaled + "; update not scaled";
    } else if (!profiles_.step_trace_times.empty()) {
      imported_.scale = scale_kernels(program.kernels, *profiles_.step_trace_times.front().phases.computing);
      imported_.scales_update = true;
      const std::string scaled = "cost model, scaled to Computing";
      imported_.basis = {scaled, scaled, scaled, scaled, scaled};
    }
    constexpr double far_off = 20;
    const double factor = imported_.scale.value_or(1);
    if (factor < far_off && factor > 1 / far_off) return;
    imported_.notes.push_back(
        fmt::format("the measured time is {:.4g} times that of the cost model: are the units right, and --model and "
                    "--batch those of "
                    "the run?",
                    factor));
  }

  const Profiles& profiles_;
  const models::Graph& graph_;
  std::uint32_t micro_batches_;
  ImportedProfile& imported_;
};

}  // namespace

std::string Profiles::gradients_file() const {
  if (record.has_value()) return record->file;
  if (gradients.has_value()) return gradients->file;
  return has_trace_nodes(*this) ? summary->file : "";
}

Profiles read_profiles(std::span<const std::string> files, const std::string& model) {
  Profiles profiles;
  for (const std::string& file : files) {
    if (is_profile_folder(file)) {
      read_profile_folder(file, model, profiles);
    } else {
      read_profile(file, model, profiles);
    }
  }
  check_sources(profiles);
  if (!model.empty() && !profiles.record.has_value() && !profiles.summary.has_value()) {
    bad_input("profile",
              "--profile-model {}: none of the files holds models; it is for *_gradient_fusion.json and "
              "gradient_summary.csv",
              model);
  }
  if (!profiles.kernels.empty() && !profiles.step_traces.empty()) {
    number_iterations(profiles.kernels.front(), profiles.step_traces.front());
  }
  return profiles;
}

models::Program imported_program(const Profiles& profiles, const models::Graph& graph, const device::Soc& soc,
                                 const device::ProgramOptions& options, std::uint32_t micro_batches,
                                 ImportedProfile& imported, std::vector<std::string>& notes) {
  if (micro_batches > 1 && (profiles.kernels.empty() || !profiles.step_traces.empty() || profiles.summary.has_value() ||
                            !profiles.gradients_file().empty())) {
    bad_input("profile",
              "{}: it is of one micro-batch: of {} of them only kernels can be measured (op_summary, kernel_details)",
              profiles.files.front().file, micro_batches);
  }
  Import importer(profiles, graph, micro_batches, imported);
  std::vector<std::string> of_model;
  models::Program modelled = make_program(graph, soc, options, of_model);
  const auto finished = [&](models::Program program) {
    importer.finish();
    return program;
  };
  if (profiles.gradients_file().empty()) {
    notes.insert(notes.end(), of_model.begin(), of_model.end());
    return finished(importer.of_model(std::move(modelled)));
  }
  const models::GradientProfile gradients =
      profiles.gradients.has_value() ? *profiles.gradients
      : profiles.record.has_value()  ? dated(*profiles.record, first_date(*profiles.record, profiles, modelled, notes))
                                     : dated(*profiles.summary, profiles.kernels.front());
  return finished(importer.of_gradients(gradients, make_program(gradients, soc, options, notes), modelled));
}

void import_stages(const std::string& folder, std::span<const ImportedStage> stages, Rank ranks,
                   std::uint32_t micro_batches, Rank printed, ImportedProfile& imported) {
  const ProfileSet set = find_profile_set(folder);
  for (Rank stage = 0; stage < stages.size(); ++stage) {
    const Rank first = stage * ranks;
    const RankProfile* of_stage = set.first_of(first, first + ranks);
    if (of_stage == nullptr) {
      bad_input("profile", "{}: no profile of stage {}, whose ranks are {} to {}; there are those of {}", folder, stage,
                first, first + ranks - 1, set.ranks_text());
    }
    const KernelProfile kernels = parse_kernel_profile(profile_text(of_stage->kernels), of_stage->kernels);
    if (!of_stage->step_trace_time.empty()) {
      require_same_time(kernels,
                        parse_step_trace_time(profile_text(of_stage->step_trace_time), of_stage->step_trace_time));
    }
    imported.files.push_back({of_stage->kernels, "kernel_details"});
    imported.notes.insert(imported.notes.end(), kernels.notes.begin(), kernels.notes.end());
    if (micro_batches == 1 && !kernels.repeated.empty()) imported.notes.push_back(kernels.repeated);
    KernelMatch match = replace_durations(kernels, stages[stage].graph, stages[stage].program, micro_batches, true);
    imported.notes.insert(imported.notes.end(), match.notes.begin(), match.notes.end());
    if (stage != printed / ranks) continue;
    imported.basis = basis_of(match);
    imported.kernels = std::move(match);
  }
  const RankProfile* of_printed = set.first_of(printed, printed + 1);
  if (of_printed == nullptr || of_printed->step_trace_time.empty()) return;
  const StepTraceTime times =
      parse_step_trace_time(profile_text(of_printed->step_trace_time), of_printed->step_trace_time);
  imported.files.push_back({times.file, "step_trace_time"});
  imported.notes.insert(imported.notes.end(), times.notes.begin(), times.notes.end());
  // Its communication counts from when a stream comes to it; what is simulated, from when all ends are there.
  const Phases phases{.step = times.phases.step, .computing = times.phases.computing};
  imported.sources.push_back({times.file, "step_trace_time", times.steps, phases});
  imported.measured = phases;
}

}  // namespace hcclsim::study
