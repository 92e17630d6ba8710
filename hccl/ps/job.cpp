#include "hccl/ps/job.hpp"

#include <array>
#include <set>
#include <span>

#include "base/error.hpp"
#include "base/text.hpp"

namespace hcclsim::hccl {
namespace {

constexpr std::uint32_t most_new_nodes = 4096;

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  for (const std::string_view word : split(text, ' ')) {
    if (!word.empty()) words.push_back(word);
  }
  return words;
}

Seconds parse_date(std::string_view text) {
  Seconds date = -1;
  try {
    date = parse_duration(text);
  } catch (const Error&) {
    bad_input("option", "'{}' is no date; give a time since the start of the job, such as 10s", text);
  }
  if (date < 0) bad_input("option", "'{}' is negative; dates count from the start of the job", text);
  return date;
}

void read_scale_out(std::string_view text, std::span<const std::string_view> words, PsRequest& request) {
  request.kind = PsRequest::Kind::scale_out;
  std::set<std::string_view> given;
  for (const std::string_view word : words) {
    const std::size_t equals = word.find('=');
    const std::string_view role = word.substr(0, equals);
    const auto count =
        equals == std::string_view::npos ? std::nullopt : parse_number<std::uint32_t>(word.substr(equals + 1));
    if (!count.has_value() || *count > most_new_nodes || (role != "server" && role != "worker")) {
      bad_input("option", "'{}': '{}' is neither server=N nor worker=N with N up to {}", text, word, most_new_nodes);
    }
    if (!given.insert(role).second) bad_input("option", "'{}': {}=N is given twice", text, role);
    (role == "server" ? request.servers : request.workers) = *count;
  }
}

void read_scale_in(std::span<const std::string_view> words, PsRequest& request) {
  request.kind = PsRequest::Kind::scale_in;
  for (const std::string_view word : words) {
    const std::size_t equals = word.find('=');
    const std::string role = equals == std::string_view::npos ? "" : std::string(word.substr(0, equals)) + "-";
    for (const std::string_view id : split(equals == std::string_view::npos ? word : word.substr(equals + 1), ',')) {
      if (!id.empty()) request.nodes.push_back(role + std::string(id));
    }
  }
}

}  // namespace

std::string_view name_of(PsState state) {
  constexpr std::array<std::string_view, 6> names{"STARTING", "READY", "NODE_TIMEOUT", "SCALE_OUT", "SCALE_IN", "EXIT"};
  return names[static_cast<std::size_t>(state)];
}

std::string_view name_of(PsRequest::Kind kind) {
  constexpr std::array<std::string_view, 4> names{"scaleout", "scalein", "nodes", "state"};
  return names[static_cast<std::size_t>(kind)];
}

std::string to_string(PsNodeName name) {
  if (name.role == PsRole::scheduler) return "scheduler";
  return fmt::format("{}-{}", name.role == PsRole::server ? "server" : "worker", name.number);
}

std::optional<PsNodeName> parse_node_name(std::string_view text) {
  if (text == "scheduler") return PsNodeName{};
  const std::size_t dash = text.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const auto number = parse_number<std::uint32_t>(text.substr(dash + 1));
  const std::string_view role = text.substr(0, dash);
  if (!number.has_value() || (role != "server" && role != "worker")) return std::nullopt;
  return PsNodeName{role == "server" ? PsRole::server : PsRole::worker, *number};
}

PsRequest parse_ps_request(std::string_view text) {
  const std::vector<std::string_view> words = words_of(text);
  constexpr const char* accepted =
      "give 'TIME scaleout server=N worker=N', 'TIME scalein server-N,…', 'TIME nodes' or 'TIME state'";
  if (words.size() < 2) bad_input("option", "'{}' is no request; {}", text, accepted);
  PsRequest request{.date = parse_date(words[0])};
  const auto rest = std::span(words).subspan(2);
  if (words[1] == "scaleout") {
    read_scale_out(text, rest, request);
  } else if (words[1] == "scalein") {
    read_scale_in(rest, request);
  } else if ((words[1] == "nodes" || words[1] == "state") && rest.empty()) {
    request.kind = words[1] == "nodes" ? PsRequest::Kind::nodes : PsRequest::Kind::state;
  } else {
    bad_input("option", "'{}' is no request; {}", text, accepted);
  }
  return request;
}

PsFailure parse_ps_failure(std::string_view text) {
  const std::vector<std::string_view> words = words_of(text);
  constexpr const char* accepted = "give 'NODE at TIME' or 'NODE at TIME restart TIME', NODE such as server-1";
  const bool restarts = words.size() == 5 && words[3] == "restart";
  if ((words.size() != 3 && !restarts) || words[1] != "at") {
    bad_input("option", "'{}' is no failure; {}", text, accepted);
  }
  const auto node = parse_node_name(words[0]);
  if (!node.has_value()) {
    bad_input("option", "'{}': '{}' is no node; accepted: scheduler, server-N, worker-N", text, words[0]);
  }
  PsFailure failure{.node = *node, .date = parse_date(words[2])};
  if (!restarts) return failure;
  failure.restart = parse_date(words[4]);
  if (*failure.restart <= failure.date) {
    bad_input("option", "'{}': it starts again before it fails; both dates count from the start of the job", text);
  }
  if (node->role == PsRole::scheduler) {
    bad_input("option", "'{}': a scheduler that is lost is not restored; nodes end when they miss it", text);
  }
  return failure;
}

PsLifeTimes life_times_of(PsGeneration generation) {
  PsLifeTimes times;
  if (generation == PsGeneration::classic) return times;
  times.node_timeout = 300;
  times.cluster_timeout = 1800;
  times.scheduler_timeout = 300;
  return times;
}

bool recoverable(const PsRecovery& recovery, PsRole role, std::uint32_t rank) {
  if (!recovery.enabled || role == PsRole::scheduler) return false;
  if (recovery.from == PsRecovery::From::checkpoint) return true;
  return role == PsRole::server && rank != 0;
}

}  // namespace hcclsim::hccl
