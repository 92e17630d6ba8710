#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "sim/cluster.hpp"

/// Measured communication times, from which link speeds are fitted.
namespace hcclsim::study {

/// What hccl_test prints: the line of column names (data_size(Bytes): | aveg_time(us): | …), then one line per size.
/// Other lines do not count, but if the command line is among them ("mpirun -n 8 ./bin/all_reduce_test -p 8 -d fp16"),
/// it says what was measured, and how.
struct CollectiveLog {
  struct Row {
    Bytes size = 0;  ///< of the payload, as hccl_test counts it
    Seconds time = 0;
    std::size_t line = 0;
  };
  std::string file;
  std::string operation;  ///< "allreduce", …; empty if the log does not say
  std::optional<Rank> ranks{};
  std::optional<Rank> npus_per_server{};
  std::string type;         ///< "fp32", …; empty if the log does not say
  std::string reduction{};  ///< "sum", …; empty if the log does not say
  std::optional<std::uint32_t> iterations{};
  std::optional<std::uint32_t> warmups{};
  std::optional<bool> zero_copy{};
  std::vector<Row> rows;  ///< ascending sizes, none twice; at least one
};

/// Throws Error(bad_input) of kind "log" with file and line: no line of column names, rows with other than four
/// columns, a second command or table (a log holds one), option values of the command that cannot be, sizes that are no
/// positive integers, above 128 GiB or come twice, times that are no positive numbers, results that failed, no sizes.
[[nodiscard]] CollectiveLog parse_collective_log(std::string_view text, const std::string& file);

/// Single transfers of one kind of link, as msprof's `communication.json` sums them up by size.
struct MeasuredTransfer {
  sim::LinkKind kind = sim::LinkKind::other;
  Bytes bytes = 0;
  Seconds time = 0;  ///< mean of all
  double count = 0;
};

/// Reads the Size Distribution (size in MB of 10^6 bytes: number, milliseconds in all) of RDMA, HCCS, PCIE and SIO in
/// every "Communication Bandwidth Info" of the file, totals left out; by kind, then size. Throws Error(bad_input) of
/// kind "log": no JSON, no distribution, numbers that cannot be.
[[nodiscard]] std::vector<MeasuredTransfer> parse_communication(std::string_view text, const std::string& file);

}  // namespace hcclsim::study
