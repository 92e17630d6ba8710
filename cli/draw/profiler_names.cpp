#include "cli/draw/profiler_names.hpp"

#include <fmt/format.h>

#include <cmath>
#include <numeric>
#include <variant>

namespace hcclsim::cli {
namespace {

constexpr std::uint32_t world = 0;

std::string_view vendor_name(hccl::Collective collective) {
  switch (collective) {
    case hccl::Collective::allreduce:
      return "allReduce";
    case hccl::Collective::reduce_scatter:
      return "reduceScatter";
    case hccl::Collective::allgather:
      return "allGather";
    case hccl::Collective::broadcast:
      return "broadcast";
    case hccl::Collective::reduce:
      return "reduce";
    case hccl::Collective::scatter:
      return "scatter";
    case hccl::Collective::gather:
      return "gather";
    case hccl::Collective::alltoall:
      return "alltoallv";
    case hccl::Collective::send_recv:
      return "batchSendRecv";
    case hccl::Collective::barrier:
      return "barrier";
  }
  return "allReduce";
}

}  // namespace

bool is_task(const sim::Span& span) {
  return span.kind != sim::SpanKind::kernel && span.kind != sim::SpanKind::collective &&
         span.kind != sim::SpanKind::host;
}

std::string_view task_name(const sim::Span& span) {
  switch (span.kind) {
    case sim::SpanKind::notify_post:
      return "Notify Record";
    case sim::SpanKind::notify_wait:
      return "Notify Wait";
    case sim::SpanKind::reduce:
      return "Reduce_Inline";
    case sim::SpanKind::local_reduce:
      return "Reduce_TBE";
    default:
      return span.transport == sim::Transport::rdma ? "RDMASend" : "Memcpy";
  }
}

std::string_view link_type(const sim::Span& span) {
  if (span.transport == sim::Transport::rdma) return "RDMA";
  switch (span.link) {
    case sim::LinkKind::pcie:
      return "PCIE";
    case sim::LinkKind::sio:
      return "SIO";
    case sim::LinkKind::ub:
      return "HCCS_SW";
    default:
      return "HCCS";
  }
}

std::int64_t nanoseconds(Seconds date) { return std::llround(date * giga); }

std::uint64_t hash_of_key(std::string_view key) {
  constexpr unsigned half = 32;
  std::uint32_t upper = 0;
  std::uint32_t lower = 0;
  for (const char letter : key) {
    const auto code = static_cast<unsigned char>(letter);
    upper = upper * 29U + code;
    lower = lower * 131U + code;
  }
  return (std::uint64_t{upper} << half) | lower;
}

ProfiledGroups::ProfiledGroups(const hccl::Plan& plan) : plan_(plan) {
  std::map<std::vector<Rank>, std::uint32_t> known;
  const auto number = [&](const std::string& name, const std::vector<Rank>& ranks) {
    const auto [place, is_new] = known.try_emplace(ranks, static_cast<std::uint32_t>(groups_.size()));
    if (!is_new) return place->second;
    ProfiledGroup& group = groups_.emplace_back();
    group.name = name;
    group.ranks = ranks;
    group.key = fmt::format("{}_{}", name, place->second);
    group.id = fmt::format("{:03}", hash_of_key(group.key));
    for (Rank local = 0; local < ranks.size(); ++local) group.places.emplace(ranks[local], local);
    return place->second;
  };
  std::vector<Rank> all(plan.ranks());
  std::iota(all.begin(), all.end(), Rank{0});
  number("hccl_world_group", all);
  for (const hccl::GroupFamily& family : plan.families) {
    std::vector<std::uint32_t>& of_rank = number_.emplace_back(plan.ranks(), world);
    for (const hccl::Communicator& group : family.groups) {
      if (group.ranks.size() < 2) continue;
      const std::uint32_t its = number(group.name, group.ranks);
      for (const Rank rank : group.ranks) of_rank[rank] = its;
    }
  }
}

std::uint32_t ProfiledGroups::number_of(const sim::Span& span) const {
  const hccl::PlanTask* task = purpose_of(plan_, span).task;
  const auto* work = task == nullptr ? nullptr : std::get_if<hccl::CollectiveTask>(&task->work);
  return work == nullptr ? world : number_[plan_.collectives[work->collective].family][span.rank];
}

std::string_view operation_name(const hccl::Plan& plan, const sim::Span& span) {
  const hccl::PlanTask* task = purpose_of(plan, span).task;
  if (task == nullptr) return vendor_name(hccl::Collective::allreduce);
  if (std::holds_alternative<hccl::SendTask>(task->work)) return "send";
  if (std::holds_alternative<hccl::ReceiveTask>(task->work)) return "receive";
  const auto* work = std::get_if<hccl::CollectiveTask>(&task->work);
  return vendor_name(work == nullptr ? hccl::Collective::allreduce
                                     : plan.collectives[work->collective].operation.collective);
}

std::string OperatorNames::next(const sim::Span& span) {
  const std::string& id = groups_.of(span).id;
  return fmt::format("hcom_{}__{}_{}_{}", operation_name(plan_, span), id.substr(id.size() - 3),
                     calls_[{span.rank, span.id.iteration}]++, span.id.iteration + 1);
}

std::optional<NotifyKey> notify_key(const hccl::Plan& plan, const sim::Span& span) {
  const bool posts = span.kind == sim::SpanKind::notify_post;
  if (span.flow == 0 || (!posts && span.kind != sim::SpanKind::notify_wait)) return std::nullopt;
  // What the notify is of: the collective, or the message by its tag.
  const hccl::PlanTask* task = purpose_of(plan, span).task;
  std::uint64_t work = 0;
  if (task != nullptr) {
    constexpr std::uint64_t messages = std::uint64_t{1} << 32;
    if (const auto* collective = std::get_if<hccl::CollectiveTask>(&task->work)) work = collective->collective;
    if (const auto* send = std::get_if<hccl::SendTask>(&task->work)) work = messages + send->tag;
    if (const auto* receive = std::get_if<hccl::ReceiveTask>(&task->work)) work = messages + receive->tag;
  }
  const auto rank = static_cast<std::uint64_t>(span.rank);
  const auto peer = static_cast<std::uint64_t>(span.peer);
  return NotifyKey{span.flow, posts ? rank : peer, posts ? peer : rank, work,
                   static_cast<std::uint64_t>(span.id.iteration)};
}

std::uint64_t notify_flow(const hccl::Plan& plan, const sim::Span& span) {
  const std::optional<NotifyKey> key = notify_key(plan, span);
  if (!key.has_value()) return 0;
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const std::uint64_t part : *key) {
    hash = (hash ^ part) * 0x100000001b3;
    hash ^= hash >> 29U;
  }
  return (hash & ((std::uint64_t{1} << 62) - 1)) | 1;
}

std::map<Rank, std::vector<const sim::Span*>> spans_by_rank(const sim::Trace& trace, const std::vector<Rank>& ranks) {
  std::map<Rank, std::vector<const sim::Span*>> spans;
  for (const Rank rank : ranks) spans[rank];
  for (const sim::Span& span : trace.spans()) {
    const auto found = spans.find(span.rank);
    if (found != spans.end()) found->second.push_back(&span);
  }
  return spans;
}

}  // namespace hcclsim::cli
