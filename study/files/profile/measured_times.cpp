#include "study/files/profile/measured_times.hpp"

#include <fmt/format.h>

#include <map>

namespace hcclsim::study {

void take_times(std::span<const SharedTime> times) {
  struct Parts {
    Seconds time = 0;
    Seconds idle = 0;
  };
  std::map<models::Kernel*, Parts> measured;
  for (const SharedTime& shared : times) {
    Seconds modelled = 0;
    for (const models::Kernel* const kernel : shared.kernels) modelled += kernel->duration;
    const auto part_of = [&](Seconds time, const models::Kernel& kernel) {
      return modelled > 0 ? time * kernel.duration / modelled : time / static_cast<double>(shared.kernels.size());
    };
    for (models::Kernel* const kernel : shared.kernels) {
      Parts& parts = measured[kernel];
      parts.time += part_of(shared.time, *kernel);
      parts.idle += part_of(shared.idle, *kernel);
    }
  }
  for (const auto& [kernel, parts] : measured) {
    kernel->duration = parts.time;
    kernel->idle = parts.idle;
  }
}

std::uint32_t launches_of(const models::Kernel& kernel, std::uint32_t micro_batches) {
  const bool once = kernel.launched != models::Launched::always || kernel.phase == models::Phase::check ||
                    kernel.phase == models::Phase::update || kernel.phase == models::Phase::compression;
  return once ? 1 : micro_batches;
}

void add_coverage(const models::Program& program, const std::set<const models::Kernel*>& replaced,
                  std::uint32_t micro_batches, KernelMatch& match) {
  for (const models::Kernel& kernel : program.kernels) {
    if (kernel.kind == models::KernelClass::communication) continue;
    const bool measured = replaced.contains(&kernel);
    const Seconds time = kernel.duration * launches_of(kernel, micro_batches);
    KernelMatch::Coverage& coverage = kernel.phase == models::Phase::forward    ? match.forward
                                      : kernel.phase == models::Phase::backward ? match.backward
                                                                                : match.update;
    coverage = coverage + KernelMatch::Coverage{.measured = measured ? 1U : 0U,
                                                .all = 1,
                                                .modelled = measured ? 0 : time,
                                                .last = kernel.name,
                                                .last_measured = measured};
    (measured ? match.replaced_time : match.modelled_time) += time;
    match.idle_time += kernel.idle * launches_of(kernel, micro_batches);
    if (measured)
      ++match.replaced;
    else
      match.modelled.push_back(kernel.name);
  }
}

KernelMatch::Coverage KernelMatch::Coverage::operator+(const Coverage& later) const {
  return {.measured = measured + later.measured,
          .all = all + later.all,
          .modelled = modelled + later.modelled,
          .last = later.last,
          .last_measured = later.last_measured};
}

std::string KernelMatch::Coverage::text() const {
  if (measured == 0) return "cost model";
  return fmt::format("{} of {} kernels measured{}", measured, all,
                     whole() ? "" : fmt::format(", {:.3f} ms modelled", modelled * 1e3));
}

}  // namespace hcclsim::study
