#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "study/jobs/job/cluster/pod.hpp"

/// Words and forms of kubectl.
namespace hcclsim::cli {

/// The column STATUS of a pod: "ContainerCreating", "Completed", "CrashLoopBackOff".
[[nodiscard]] std::string_view kubectl_status(const study::Pod& pod);
/// An age: "95s", "3m5s", "2h", "5d3h"; to the second up to ten minutes.
[[nodiscard]] std::string kubectl_age(Seconds age);
/// A date: "1970-01-01T00:01:35Z"; the job is created when 1970 begins.
[[nodiscard]] std::string kubernetes_time(Seconds date);
/// "0-3,8": numbers as runs.
[[nodiscard]] std::string number_runs(const std::vector<Rank>& numbers);

}  // namespace hcclsim::cli
