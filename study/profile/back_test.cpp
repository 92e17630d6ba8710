#include "study/profile/back_test.hpp"

#include <fmt/format.h>

#include <limits>
#include <optional>

namespace hcclsim::study {

double BackTestRow::error() const {
  if (simulated == measured) return 0;
  return measured == 0 ? std::numeric_limits<double>::infinity() : (simulated - measured) / measured;
}

BackTest back_test(const Phases& measured, const Phases& simulated) {
  BackTest test;
  const auto add = [&](const char* phase, const std::optional<Seconds>& of_run,
                       const std::optional<Seconds>& of_model) {
    if (of_run.has_value() && of_model.has_value()) test.rows.push_back({phase, *of_run, *of_model});
  };
  add("FP", measured.forward, simulated.forward);
  add("BP", measured.backward, simulated.backward);
  add("FP+BP", measured.forward_backward, simulated.forward_backward);
  if (measured.allreduces.size() == simulated.allreduces.size()) {
    for (std::size_t i = 0; i < measured.allreduces.size(); ++i) {
      test.rows.push_back({fmt::format("AR{}", i + 1), measured.allreduces[i], simulated.allreduces[i]});
    }
  } else if (!measured.allreduces.empty()) {
    test.notes.push_back(
        fmt::format("{} allreduces were measured and {} are simulated: tail and step are of different splits",
                    measured.allreduces.size(), simulated.allreduces.size()));
  }
  if (measured.overlapped.has_value() && measured.overlapped != simulated.overlapped) {
    test.notes.emplace_back(*measured.overlapped
                                ? "the measured allreduces begin beside the backward pass: --hcom-parallel on"
                                : "the measured allreduces begin behind the backward pass: --hcom-parallel off");
  }
  add("update", measured.update, simulated.update);
  add("update after AR", measured.last_update, simulated.last_update);
  add("tail", measured.tail, simulated.tail);
  add("step", measured.step, simulated.step);
  return test;
}

}  // namespace hcclsim::study
