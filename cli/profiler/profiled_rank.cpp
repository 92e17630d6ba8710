#include "cli/profiler/profiled_rank.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <utility>
#include <variant>

#include "cli/terminal/output.hpp"

namespace hcclsim::cli {
namespace {

/// "data_gradient" is DataGradient.
std::string camel_case(std::string_view text) {
  std::string camel;
  bool upper = true;
  for (const char letter : text) {
    if (std::isalnum(static_cast<unsigned char>(letter)) == 0) {
      upper = true;
      continue;
    }
    camel += upper ? static_cast<char>(std::toupper(static_cast<unsigned char>(letter))) : letter;
    upper = false;
  }
  return camel;
}

/// Of a kernel "<operator>:<what>": that of the vendor's library for products, else what it does, or the operator's
/// last name where that is its forward pass.
std::string type_of(const models::Kernel& kernel) {
  const std::string_view name = kernel.name;
  const std::size_t colon = name.rfind(':');
  const std::string_view what = colon == std::string_view::npos ? name : name.substr(colon + 1);
  if (kernel.kind == models::KernelClass::matmul) return "MatMul";
  if (kernel.kind == models::KernelClass::convolution) {
    if (what.starts_with("data_gradient")) return "Conv2DBackpropInput";
    return what.starts_with("weight_gradient") ? "Conv2DBackpropFilter" : "Conv2D";
  }
  if (!what.starts_with("forward") || colon == std::string_view::npos) return camel_case(what);
  std::string_view op = name.substr(0, colon);
  op = op.substr(op.rfind('.') + 1);  // npos + 1: all of it
  return camel_case(op.substr(0, op.find_last_not_of("0123456789_") + 1));
}

std::string_view core_of(const models::Kernel& kernel) {
  return kernel.kind == models::KernelClass::vector ? "AI_VECTOR_CORE" : "AI_CORE";
}

/// The kernel of the role's program that a span shows; null if the Plan does not have it.
const models::Kernel* kernel_of(const hccl::Role& role, const sim::Span& span) {
  if (span.id.task >= role.tasks.size()) return nullptr;
  const auto* block = std::get_if<hccl::KernelBlock>(&role.tasks[span.id.task].work);
  return block == nullptr ? nullptr : &role.program->kernels[block->first + span.id.part];
}

}  // namespace

std::vector<const sim::Span*> ProfiledRank::with_late_receives(std::span<const sim::Span* const> spans,
                                                               const hccl::MessageStarts& messages) {
  using TaskOfIteration = std::pair<std::int32_t, std::uint32_t>;
  std::map<TaskOfIteration, Seconds> begins;
  for (const sim::Span* span : spans) {
    if (span->kind != sim::SpanKind::collective || operation_name(step_.plan, *span) != "receive") continue;
    begins[{span->id.iteration, span->id.task}] = messages.under_way(*span);
  }
  std::vector<const sim::Span*> shown(spans.begin(), spans.end());
  for (const sim::Span*& span : shown) {
    const auto begin = begins.find({span->id.iteration, span->id.task});
    if (begin == begins.end() || begin->second <= span->start || begin->second > span->end) continue;
    late_.push_back(*span);
    late_.back().start = begin->second;
    span = &late_.back();
  }
  return shown;
}

ProfiledRank::ProfiledRank(const hccl::TimedStep& step, const ProfiledGroups& groups,
                           const hccl::MessageStarts& messages, Rank rank, std::span<const sim::Span* const> spans)
    : step_(step), groups_(groups), rank_(rank) {
  const std::vector<std::vector<Seconds>>& ends = step.pipeline_ends;
  const std::size_t first = ends.size() > 1 ? 1 : 0;
  Seconds begin = 0;
  if (first == 1) {
    begin = ends.front()[rank];
  } else if (!spans.empty()) {
    begin = (*std::ranges::min_element(spans, {}, &sim::Span::start))->start;
  }
  for (std::size_t i = first; i < ends.size(); ++i) {
    windows_.push_back({static_cast<std::uint32_t>(i + 1), {begin, ends[i][rank]}});
    begin = ends[i][rank];
  }
  OperatorNames names(step.plan, groups);
  const std::vector<const sim::Span*> late = with_late_receives(spans, messages);
  for (std::size_t i = 0; i < spans.size(); ++i) {
    const sim::Span* const span = late[i];
    const bool shown = span->id.iteration >= static_cast<std::int32_t>(first);
    if (shown) spans_.push_back(span);
    if (span->kind == sim::SpanKind::collective) {
      if (!shown) continue;
      std::string type = fmt::format("hcom_{}_", operation_name(step.plan, *span));
      ops_.push_back({span, spans[i]->start, names.next(*span), std::move(type), "HCCL"});
    } else if (span->kind == sim::SpanKind::kernel && shown) {
      const models::Kernel* kernel = kernel_of(role(), *span);
      if (kernel != nullptr) ops_.push_back({span, span->start, kernel->name, type_of(*kernel), core_of(*kernel)});
    }
  }
  std::ranges::stable_sort(ops_, {}, [](const ProfiledOp& op) { return op.span->start; });
}

std::string profiled_date(Seconds date) { return fmt::format("{:.3f}", date * microseconds_per_second); }

std::string profiled_duration(Seconds duration) { return fmt::format("{:.6f}", duration * microseconds_per_second); }

}  // namespace hcclsim::cli
