#include "study/communication/calibrate/bandwidth_log.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/text.hpp"

namespace hcclsim::study {
namespace {

/// The number behind an option of the measured command.
template <typename Number>
Number number_of(std::string_view value, std::string_view option, const CollectiveLog& log, std::size_t line) {
  const auto number = parse_number<Number>(value);
  if (!number.has_value()) {
    bad_input("log", "{}:{}: {} {} of the command is no number", log.file, line, option, value);
  }
  return *number;
}

/// Takes what an option of hccl_test says.
void read_option(std::string_view option, std::string_view value, CollectiveLog& log, std::size_t line) {
  if (option == "-p" || option == "--npus") log.npus_per_server = number_of<Rank>(value, option, log, line);
  if (option == "-d" || option == "--datatype") log.type = value;
  if (option == "-o" || option == "--op") log.reduction = value;
  if (option == "-n" || option == "--iters") log.iterations = number_of<std::uint32_t>(value, option, log, line);
  if (option == "-w" || option == "--warmup_iters") log.warmups = number_of<std::uint32_t>(value, option, log, line);
  if (option == "-z" || option == "--zero_copy") log.zero_copy = number_of<std::uint32_t>(value, option, log, line) > 0;
}

/// Takes from a command line what it says of the measurement.
void read_command(std::string_view line, CollectiveLog& log, std::size_t number) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 8> programs{{
      {"all_reduce_test", "allreduce"},
      {"all_gather_test", "allgather"},
      {"reduce_scatter_test", "reducescatter"},
      {"alltoall_test", "alltoall"},
      {"alltoallv_test", "alltoallv"},
      {"broadcast_test", "broadcast"},
      {"scatter_test", "scatter"},
      {"reduce_test", "reduce"},
  }};
  const std::vector<std::string_view> words = split_trimmed(line, ' ');
  bool is_program = false;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view name = words[i].substr(words[i].rfind('/') + 1);
    if (is_program && (name == "|" || name == ">" || name == "&&" || name == ";")) break;
    for (const auto& [program, operation] : programs) {
      if (name != program) continue;
      if (!log.operation.empty()) {
        bad_input("log", "{}:{}: a second command; give each measurement as a log of its own", log.file, number);
      }
      log.operation = operation;
      is_program = true;
    }
    if (i + 1 == words.size()) break;
    if (is_program) {
      read_option(words[i], words[i + 1], log, number);
    } else if (words[i] == "-n" || words[i] == "-np") {
      log.ranks = parse_number<Rank>(words[i + 1]);
    }
  }
}

CollectiveLog::Row read_row(const std::vector<std::string_view>& columns, const CollectiveLog& log, std::size_t line) {
  constexpr std::size_t count = 4;
  if (columns.size() != count)
    bad_input("log", "{}:{}: {} columns instead of {}", log.file, line, columns.size(), count);
  constexpr Bytes largest = Bytes{1} << 37U;  // as much as an NPU holds
  const auto size = parse_number<Bytes>(columns[0]);
  if (!size.has_value() || *size == 0 || *size > largest) {
    bad_input("log", "{}:{}: data_size must be an integer from 1 to {} (128 GiB), got '{}'", log.file, line, largest,
              columns[0]);
  }
  const auto time_us = parse_number<double>(columns[1]);
  if (!time_us.has_value() || *time_us <= 0) {
    bad_input("log", "{}:{}: aveg_time must be a positive number, got '{}'", log.file, line, columns[1]);
  }
  if (columns[3] == "failed") bad_input("log", "{}:{}: the result check of this size failed", log.file, line);
  return {*size, *time_us * microsecond, line};
}

/// Rows begin with a size; in the table, with anything that was meant as one.
bool is_row(std::string_view size, bool in_table) {
  const bool number = size.find_first_not_of("0123456789") == std::string_view::npos && !size.empty();
  return number || (in_table && size.find_first_of("[ ]") == std::string_view::npos);
}

sim::LinkKind kind_of(const std::string& name) {
  if (name == "RDMA") return sim::LinkKind::roce;
  if (name == "HCCS") return sim::LinkKind::hccs;
  if (name == "PCIE") return sim::LinkKind::pcie;
  return name == "SIO" ? sim::LinkKind::sio : sim::LinkKind::other;
}

/// Transfers with the time of all of them.
using Totals = std::map<std::pair<sim::LinkKind, Bytes>, MeasuredTransfer>;

void add_distribution(const Json& sizes, sim::LinkKind kind, const std::string& file, Totals& totals) {
  constexpr double megabyte = 1e6;  // sizes are multiples of 32 bytes in it, not in MiB
  for (const auto& [size_text, entry] : sizes.items()) {
    const auto size = parse_number<double>(size_text);
    const bool is_pair = entry.is_array() && entry.size() == 2 && entry[0].is_number() && entry[1].is_number();
    if (!size.has_value() || !(*size > 0) || *size > megabyte || !is_pair || !(entry[0].get<double>() > 0) ||
        !(entry[1].get<double>() > 0)) {
      bad_input("log", "{}: Size Distribution of {}: '{}': {} must be a size in MB and [number, milliseconds]", file,
                name_of(kind), size_text, entry.dump());
    }
    const auto bytes = static_cast<Bytes>(std::llround(*size * megabyte));
    MeasuredTransfer& total = totals.try_emplace({kind, bytes}, MeasuredTransfer{kind, bytes}).first->second;
    total.count += entry[0].get<double>();
    total.time += entry[1].get<double>() * 1e-3;
  }
}

void collect(const Json& json, const std::string& file, Totals& totals) {
  if (!json.is_object()) return;
  for (const auto& [key, value] : json.items()) {
    if (key.starts_with("Total")) continue;
    if (key != "Communication Bandwidth Info") {
      collect(value, file, totals);
      continue;
    }
    if (!value.is_object()) bad_input("log", "{}: Communication Bandwidth Info must be an object", file);
    for (const auto& [transport, info] : value.items()) {
      const sim::LinkKind kind = kind_of(transport);
      if (kind == sim::LinkKind::other || !info.is_object()) continue;
      const Json* const sizes = info.find("Size Distribution");
      if (sizes != nullptr && sizes->is_object()) add_distribution(*sizes, kind, file, totals);
    }
  }
}

}  // namespace

CollectiveLog parse_collective_log(std::string_view text, const std::string& file) {
  CollectiveLog log{.file = file, .operation = "", .type = "", .rows = {}};
  bool in_table = false;
  std::size_t number = 0;
  for (const std::string_view line : split_trimmed(text, '\n')) {
    ++number;
    if (line.find("_test") != std::string_view::npos) {
      read_command(line, log, number);
      continue;
    }
    const std::vector<std::string_view> columns = split_trimmed(line, '|');
    if (columns.front().starts_with("data_size")) {
      if (in_table && !log.rows.empty()) {
        bad_input("log", "{}:{}: a second table; give each measurement as a log of its own", file, number);
      }
      in_table = true;
      continue;
    }
    if (columns.size() < 2 || !is_row(columns.front(), in_table)) continue;
    if (!in_table)
      bad_input("log", "{}:{}: a row before the line 'data_size(Bytes): | aveg_time(us): | …'", file, number);
    log.rows.push_back(read_row(columns, log, number));
  }
  if (!in_table) bad_input("log", "{}: no line 'data_size(Bytes): | aveg_time(us): | …' as hccl_test prints it", file);
  if (log.rows.empty()) bad_input("log", "{}: no sizes below the line of column names", file);
  std::stable_sort(log.rows.begin(), log.rows.end(), [](const auto& a, const auto& b) { return a.size < b.size; });
  for (std::size_t i = 1; i < log.rows.size(); ++i) {
    if (log.rows[i].size != log.rows[i - 1].size) continue;
    bad_input("log", "{}:{}: size {} was already measured in line {}", file, log.rows[i].line, log.rows[i].size,
              log.rows[i - 1].line);
  }
  return log;
}

std::vector<MeasuredTransfer> parse_communication(std::string_view text, const std::string& file) {
  Totals totals;
  Json json = parse_json_text(text, file, "log");
  json.sort_keys();  // sums do not depend on the order of the file
  collect(json, file, totals);
  if (totals.empty()) {
    bad_input("log", "{}: no Size Distribution of RDMA, HCCS, PCIE or SIO in any 'Communication Bandwidth Info'", file);
  }
  std::vector<MeasuredTransfer> transfers;
  for (auto& [key, total] : totals) {
    total.time /= total.count;
    transfers.push_back(total);
  }
  return transfers;
}

}  // namespace hcclsim::study
