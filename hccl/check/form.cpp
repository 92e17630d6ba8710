#include "hccl/check/form.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>
#include <vector>

namespace hcclsim::hccl {
namespace {

struct Problem {
  const char* kind = nullptr;
  std::string message;
};

bool overlap(const ByteRange& a, const ByteRange& b) {
  return a.buffer == b.buffer && a.offset < b.offset + b.length && b.offset < a.offset + a.length;
}

class FormCheck {
 public:
  FormCheck(const TaskProgram& program, const CheckOptions& options, Findings& findings)
      : program_(program), options_(options), findings_(findings) {}

  void check_tasks() {
    visit_tasks(program_, [&](const TaskId& id, const ProgramPart& /*part*/, const ProgramTask& task) {
      for (const Problem& problem : problems_of(task, id.rank)) {
        if (!findings_.wanted()) continue;
        findings_.keep({problem.kind, fmt::format("{}: {}", program_.describe(id), problem.message), {id.rank}, {id}});
      }
    });
  }

 private:
  /// Of the first movement that has any.
  [[nodiscard]] std::vector<Problem> problems_of(const ProgramTask& task, Rank rank) const {
    if (has_peer(task.kind)) {
      if (task.peer >= program_.ranks) return {{"peer", fmt::format("there are {} ranks", program_.ranks)}};
      if (task.peer == rank) return {{"peer", "its peer is the rank itself"}};
    }
    if (is_notify(task.kind)) {
      if (task.value >= program_.notifies) return {{"notify", fmt::format("a rank has {}", program_.notifies)}};
      return {};
    }
    for (const Movement& movement : program_.movements_of(task)) {
      std::vector<Problem> problems = problems_of(movement, source_rank(task, rank), destination_rank(task, rank));
      if (!problems.empty()) return problems;
    }
    if (!is_transfer(task.kind) || !reduces(task.kind)) return {};
    Problem problem = reduction_problem(task, rank);
    if (problem.kind == nullptr) return {};
    return {std::move(problem)};
  }

  /// What keeps a transfer from reducing on its way.
  [[nodiscard]] Problem reduction_problem(const ProgramTask& task, Rank rank) const {
    if (!options_.no_reduction || !moves_bytes(task)) return {};
    std::string reason = options_.no_reduction(source_rank(task, rank), destination_rank(task, rank));
    if (!reason.empty()) return {"in-transit", std::move(reason)};
    for (const auto& [source, destination] : program_.movements_of(task)) {
      for (const ByteRange& range : {source, destination}) {
        if (range.offset % options_.reduction_alignment == 0) continue;
        return {"in-transit", fmt::format("byte {} of the {}: reductions on the way begin at multiples of {}",
                                          range.offset, name_of(range.buffer), options_.reduction_alignment)};
      }
    }
    return {};
  }

  [[nodiscard]] bool moves_bytes(const ProgramTask& task) const {
    const std::span<const Movement> moved = program_.movements_of(task);
    return std::any_of(moved.begin(), moved.end(), [](const Movement& movement) { return movement.source.length > 0; });
  }

  [[nodiscard]] std::vector<Problem> problems_of(const Movement& movement, Rank from, Rank to) const {
    if (movement.destination.buffer == Buffer::input) return {{"input", "writes into an input"}};
    std::vector<Problem> problems;
    if (movement.source.length != movement.destination.length)
      problems.push_back({"length", "both sides must be as long"});
    for (const Problem& problem :
         std::array<Problem, 2>{problem_of(movement.source, from), problem_of(movement.destination, to)}) {
      if (problem.kind != nullptr) problems.push_back(problem);
    }
    if (problems.empty() && movement.destination.length > 0 && from == to &&
        overlap(movement.source, movement.destination)) {
      problems.push_back({"overlap", "source and destination overlap"});
    }
    return problems;
  }

  [[nodiscard]] Problem problem_of(const ByteRange& range, Rank owner) const {
    const Bytes size = program_.size_of_buffer(range.buffer, owner);
    if (range.length > size || range.offset > size - range.length) {
      return {"range", fmt::format("bytes {}+{} leave the {} bytes of the {}", range.offset, range.length, size,
                                   name_of(range.buffer))};
    }
    if (range.length == 0) return {};
    const Bytes element = size_of(program_.type);
    // Blocks lie where their sizes put them; slices of a single one are aligned.
    const Bytes alignment = program_.blocks() == 1 ? program_.alignment : element;
    if (range.offset % alignment != 0) {
      return {"alignment", fmt::format("byte {} is not a multiple of {}", range.offset, alignment)};
    }
    if (range.length % element != 0) {
      return {"alignment", fmt::format("{} bytes cut an element of {} in two", range.length, element)};
    }
    return {};
  }

  const TaskProgram& program_;
  const CheckOptions& options_;
  Findings& findings_;
};

}  // namespace

void check_form(const TaskProgram& program, const CheckOptions& options, Findings& findings) {
  const auto check = [&](const char* kind, const char* what, std::uint64_t needed, std::uint64_t available) {
    if (needed <= available || !findings.wanted()) return;
    findings.keep({kind, fmt::format("the schedule needs {} {}; there are {}", needed, what, available)});
  };
  if (options.streams != 0) check("streams", "streams of every rank", program.queues, options.streams);
  if (options.ccl) check("ccl", "bytes of the communicator's buffer", program.ccl, *options.ccl);
  if (options.notifies != 0) check("notifies", "notifies of every rank", program.notifies, options.notifies);
  if (options.scratch) check("scratch", "bytes of scratch memory of every rank", program.scratch, *options.scratch);
  if (options.hbm != 0) {
    Bytes most = 0;
    for (Rank rank = 0; rank < program.unrolled(); ++rank) {
      Bytes all = 0;
      for (const Buffer buffer : {Buffer::input, Buffer::output, Buffer::scratch, Buffer::ccl}) {
        all += program.size_of_buffer(buffer, rank);
      }
      most = std::max(most, all);
    }
    check("hbm", "bytes of memory of an NPU", most, options.hbm);
  }
  FormCheck(program, options, findings).check_tasks();
}

}  // namespace hcclsim::hccl
