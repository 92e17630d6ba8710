#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cli/profiler/profiled_rank.hpp"
#include "cli/terminal/output.hpp"

namespace hcclsim::cli {
namespace {

struct TypeTotal {
  std::uint64_t count = 0;
  Seconds total = 0;
  Seconds least = 0;
  Seconds most = 0;

  void add(Seconds duration) {
    least = count == 0 ? duration : std::min(least, duration);
    most = std::max(most, duration);
    total += duration;
    ++count;
  }
};

}  // namespace

void write_kernel_details(const ProfiledRank& rank, const Sink& sink) {
  Rows rows(sink);
  rows.add(
      "Step Id,Device_id,Model ID,Task ID,Stream ID,Name,Type,OP State,Accelerator Core,Start Time(us),Duration(us),"
      "Wait Time(us),Block Dim,Mix Block Dim,HF32 Eligible,Input Shapes,Input Data Types,Input Formats,Output Shapes,"
      "Output Data Types,Output Formats,Context ID");
  std::map<std::uint32_t, Seconds> idle_since;  // by stream
  std::uint64_t number = 0;
  for (const ProfiledOp& op : rank.ops()) {
    const sim::Span& span = *op.span;
    const auto [before, is_first] = idle_since.try_emplace(span.stream, span.start);
    const Seconds wait = std::max(0.0, span.start - before->second);
    before->second = span.end;
    rows.add("{},{},0,{},{},{},{},static,{},{},{},{},0,0,NO,N/A,N/A,N/A,N/A,N/A,N/A,N/A", span.id.iteration + 1,
             rank.rank(), number++, span.stream, csv_field(op.name), csv_field(op.type), op.core,
             profiled_date(span.start), profiled_duration(span.end - span.start), profiled_duration(wait));
  }
  rows.hand_on();
}

void write_op_statistic(const ProfiledRank& rank, const Sink& sink) {
  std::map<std::pair<std::string_view, std::string_view>, TypeTotal> totals;  // by type and core
  Seconds all = 0;
  for (const ProfiledOp& op : rank.ops()) {
    if (op.communicates()) continue;
    totals[{op.type, op.core}].add(op.span->end - op.span->start);
    all += op.span->end - op.span->start;
  }
  std::vector<std::pair<std::pair<std::string_view, std::string_view>, TypeTotal>> sorted(totals.begin(), totals.end());
  std::ranges::stable_sort(sorted, std::greater{}, [](const auto& one) { return one.second.total; });
  Rows rows(sink);
  rows.add("Device_id,OP Type,Core Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us),Ratio(%)");
  for (const auto& [type, total] : sorted) {
    rows.add("{},{},{},{},{},{},{},{},{:.3f}", rank.rank(), csv_field(type.first), type.second, total.count,
             profiled_duration(total.total), profiled_duration(total.least),
             profiled_duration(total.total / static_cast<double>(total.count)), profiled_duration(total.most),
             all > 0 ? total.total / all * 100 : 0);
  }
  rows.hand_on();
}

}  // namespace hcclsim::cli
