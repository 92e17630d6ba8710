#include "cli/commands/schedule_run.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <string>

#include "base/error.hpp"
#include "base/json.hpp"
#include "cli/options/parse/common.hpp"
#include "cli/print/output.hpp"
#include "device/numerics/worker_pool.hpp"
#include "hccl/schedule/file/schedule_file.hpp"
#include "hccl/verify/test_data.hpp"
#include "hccl/verify/value_check.hpp"

namespace hcclsim::cli {
namespace {

struct RunCommand {
  std::string file;
  std::uint64_t seed = 1;
  unsigned workers = 0;
  std::string format = "text";
};

std::string text_of(const RunCommand& command, const hccl::Schedule& schedule, const hccl::ValueCheck& check) {
  std::string text =
      fmt::format("{}: {} {} among {} ranks, payload {} {}, on random data with seed {}\n", command.file,
                  schedule.algorithm, name_of(schedule.collective), schedule.ranks,
                  with_thousands(schedule.payload() / size_of(schedule.type)), name_of(schedule.type), command.seed);
  text += fmt::format("{} elements compared", with_thousands(check.elements));
  if (reduces(schedule.collective)) {
    text += fmt::format("; {}, at most {} reduction{} in a row", name_of(schedule.op), check.additions,
                        check.additions == 1 ? "" : "s");
    if (hccl::is_float(schedule.type)) {
      text += fmt::format("; largest difference from fp64 {:.3g}", check.largest_difference);
      if (check.largest_difference > 0) text += fmt::format(" where {:.3g} is the bound", check.bound);
    }
  }
  text += '\n';
  if (check.ok()) return text + "right\n";
  const hccl::WrongElement& first = *check.first_wrong;
  return text + fmt::format("wrong: {} elements; the first is element {} of rank {}: {} instead of {}\n",
                            with_thousands(check.wrong), first.element, first.rank, first.found, first.expected);
}

std::string json_of(const RunCommand& command, const hccl::Schedule& schedule, const hccl::ValueCheck& check) {
  Json json{{"format_version", 1},
            {"file", command.file},
            {"collective", name_of(schedule.collective)},
            {"algorithm", schedule.algorithm},
            {"ranks", schedule.ranks},
            {"bytes", schedule.payload()},
            {"dtype", name_of(schedule.type)},
            {"op", name_of(schedule.op)},
            {"seed", command.seed},
            {"ok", check.ok()},
            {"elements", check.elements},
            {"wrong", check.wrong},
            {"additions", check.additions},
            {"largest_difference", check.largest_difference},
            {"bound", check.bound},
            {"first_wrong", nullptr}};
  if (check.first_wrong.has_value()) {
    const hccl::WrongElement& first = *check.first_wrong;
    json["first_wrong"] = {
        {"rank", first.rank}, {"element", first.element}, {"expected", first.expected}, {"found", first.found}};
  }
  return json.dump(2) + '\n';
}

/// An error names the file.
hccl::ValueCheck execute(const RunCommand& command, const hccl::Schedule& schedule, device::WorkerPool& workers) {
  try {
    return hccl::check_values(schedule, command.seed, workers);
  } catch (const Error& error) {
    throw Error(error.code(), error.kind(), fmt::format("{}: {}", command.file, error.what()));
  }
}

void run(const RunCommand& command) {
  const hccl::Schedule schedule = hccl::read_schedule(command.file).schedule;
  require_memory(command.file, schedule);
  device::WorkerPool workers(command.workers);
  const hccl::ValueCheck check = execute(command, schedule, workers);
  print(command.format == "json" ? json_of(command, schedule, check) : text_of(command, schedule, check));
  if (!check.ok()) throw Error(ErrorCode::check_failed, "schedule", command.file + " gives wrong results");
}

}  // namespace

void require_memory(const std::string& file, const hccl::Schedule& schedule) {
  const Bytes needed = hccl::buffer_bytes(schedule);
  const Bytes there = static_cast<Bytes>(::sysconf(_SC_PHYS_PAGES)) * static_cast<Bytes>(::sysconf(_SC_PAGE_SIZE));
  if (needed <= there) return;
  bad_input("memory", "{}: the buffers of {} ranks take {} MiB, this computer has {} MiB; `schedule check` proves it",
            file, schedule.ranks, needed >> 20U, there >> 20U);
}

void add_schedule_run(Command& schedule) {
  Command& command = schedule.add_command("run", "Execute a schedule on real data; status 1 if it is wrong");
  const auto options = std::make_shared<RunCommand>();
  constexpr std::uint64_t most_workers = 1024;
  command.add("FILE", read_file(options->file), "A schedule in either form").value_name("TEXT").required();
  command.add("--seed", whole_number(options->seed, 0, std::numeric_limits<std::uint64_t>::max()), "Of the random data")
      .value_name("UINT")
      .with_default();
  command
      .add("--workers", whole_number(options->workers, 0, most_workers), "Threads that compute; 0: one per processor")
      .value_name("UINT")
      .with_default();
  add_format_option(command, options->format, {"text", "json"});
  command.footer(
      "Examples:\n"
      "  hcclsim schedule run ring.txt\n"
      "  hcclsim schedule run ring.txt --seed 7 --format json");
  command.on_run([options] { run(*options); });
}

}  // namespace hcclsim::cli
