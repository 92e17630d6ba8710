#include "cli/print/plan/comm_reuse_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cli/terminal/output.hpp"

namespace hcclsim::cli {
namespace {

/// Classes that text lists.
constexpr std::size_t most_classes = 10;

/// Of the roles that have any.
std::string calls_text(const hccl::ReuseClass& one) {
  std::vector<std::uint32_t> calls = one.calls;
  std::erase(calls, 0U);
  const auto [least, most] = std::ranges::minmax(calls);
  return least == most ? fmt::to_string(most) : fmt::format("{}..{}", least, most);
}

Json account_json(const hccl::StreamAccount& account) {
  return {{"operators", account.operators},
          {"compute_streams", account.compute},
          {"communication_streams", account.communication},
          {"secondary_streams", account.secondary},
          {"streams", account.streams()},
          {"assumed_compile_s", account.compile}};
}

}  // namespace

std::string comm_reuse_text(const hccl::CommReuseReport& report) {
  std::string text =
      report.limit == 0
          ? "Communication operators are not shared (--comm-reuse off)\n"
          : fmt::format("Communication operators that do the same share one, at most {} calls\n", report.limit);
  Table table("stage|ranks|classes|replaced|operators|after|communication streams|after|streams|after|compile s|after");
  for (const hccl::RoleAccount& role : report.roles) {
    table.add_row({fmt::to_string(role.stage), fmt::to_string(role.ranks), fmt::to_string(role.classes),
                   fmt::to_string(role.replaced), fmt::to_string(role.before.operators),
                   fmt::to_string(role.after.operators), fmt::to_string(role.before.communication),
                   fmt::to_string(role.after.communication), fmt::to_string(role.before.streams()),
                   fmt::to_string(role.after.streams()), fmt::format("{:.2f}", role.before.compile),
                   fmt::format("{:.2f}", role.after.compile)});
  }
  text += table.to_string("  ");
  text +=
      fmt::format("  streams of a device: {}; compile times are assumed, {} ms for an operator and {} ms for a call\n",
                  report.rules.streams, hccl::assumed_compile * 1e3, hccl::assumed_call * 1e3);
  if (report.classes.empty()) return text + "  no operator has a class: none is a collective without fusion\n";
  Table classes("calls|fit on a stream|<shared|<class");
  for (std::size_t i = 0; i < std::min(most_classes, report.classes.size()); ++i) {
    const hccl::ReuseClass& one = report.classes[i];
    classes.add_row({calls_text(one), fmt::to_string(report.rules.tasks_per_stream / one.tasks),
                     one.reused           ? "yes"
                     : one.reason.empty() ? "no"
                                          : "no: " + one.reason,
                     one.title});
  }
  text += classes.to_string("  ");
  if (report.classes.size() > most_classes) {
    text += fmt::format("  and {} more classes\n", report.classes.size() - most_classes);
  }
  return text;
}

Json comm_reuse_json(const hccl::CommReuseReport& report) {
  Json roles = Json::array();
  for (const hccl::RoleAccount& role : report.roles) {
    roles.push_back({{"stage", role.stage},
                     {"first_rank", role.first_rank},
                     {"ranks", role.ranks},
                     {"candidates", role.candidates},
                     {"classes", role.classes},
                     {"replaced", role.replaced},
                     {"before", account_json(role.before)},
                     {"after", account_json(role.after)}});
  }
  Json classes = Json::array();
  for (const hccl::ReuseClass& one : report.classes) {
    classes.push_back({{"class", one.title},
                       {"tasks", one.tasks},
                       {"calls", one.calls},
                       {"reused", one.reused},
                       {"reason", one.reason.empty() ? Json() : Json(one.reason)}});
  }
  return {{"limit", report.limit},
          {"tasks_per_stream", report.rules.tasks_per_stream},
          {"stream_limit", report.rules.streams},
          {"roles", std::move(roles)},
          {"classes", std::move(classes)}};
}

}  // namespace hcclsim::cli
