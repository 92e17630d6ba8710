#include "study/communication/measure/names.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string>

#include "base/error.hpp"
#include "base/suggest.hpp"
#include "base/text.hpp"

namespace hcclsim::study {
namespace {

struct Spelling {
  std::string_view name;
  NamedCollective collective;
};
using hccl::Collective;
constexpr std::array<Spelling, 15> spellings{{{"allreduce", {Collective::allreduce}},
                                              {"reduce-scatter", {Collective::reduce_scatter}},
                                              {"reduce-scatter-v", {Collective::reduce_scatter, true}},
                                              {"allgather", {Collective::allgather}},
                                              {"allgather-v", {Collective::allgather, true}},
                                              {"broadcast", {Collective::broadcast}},
                                              {"reduce", {Collective::reduce}},
                                              {"scatter", {Collective::scatter}},
                                              {"gather", {Collective::gather}},
                                              {"alltoall", {Collective::alltoall}},
                                              {"alltoall-v", {Collective::alltoall, true}},
                                              {"alltoall-vc", {Collective::alltoall, true}},
                                              {"send-recv", {Collective::send_recv}},
                                              {"batch-send-recv", {Collective::send_recv, true}},
                                              {"barrier", {Collective::barrier}}}};

std::string letters_of(std::string_view name) {
  std::string letters;
  for (const char c : name) {
    if (c != '-' && c != '_') letters += c;
  }
  return letters;
}

NamedCollective parse(std::string_view name, bool with_barrier) {
  const std::string letters = letters_of(name);
  std::vector<std::string> names;
  for (const Spelling& spelling : spellings) {
    if (spelling.collective.collective == Collective::barrier && !with_barrier) continue;
    if (letters_of(spelling.name) == letters) return spelling.collective;
    names.emplace_back(spelling.name);
  }
  bad_input("option", "unknown collective '{}'; accepted: {}{}", name, fmt::join(names, ", "),
            did_you_mean(name, names));
}

}  // namespace

NamedCollective parse_collective_name(std::string_view name) { return parse(name, true); }

NamedCollective parse_collective_with_payload(std::string_view name) { return parse(name, false); }

Bytes parse_size(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  constexpr std::string_view units = "KMGkmg";
  const std::size_t prefix = unit.size() == 1 ? units.find(unit) : std::string_view::npos;
  const bool known = unit.empty() || prefix != std::string_view::npos;
  const double bytes = unit.empty() ? number : std::ldexp(number, 10 * (static_cast<int>(prefix % 3) + 1));
  constexpr double largest = 0x1p50;
  if (error != std::errc() || !known || !(bytes >= 0) || bytes > largest || bytes != std::floor(bytes)) {
    bad_input("option", "'{}' is no size; accepted: whole bytes up to 2^50, such as 1024, 8K, 64M, 1G (powers of two)",
              text);
  }
  return static_cast<Bytes>(bytes);
}

std::vector<std::uint64_t> parse_counts(std::string_view text) {
  std::vector<std::uint64_t> counts;
  for (const std::string_view word : split(text, ',')) {
    const std::optional<std::uint64_t> count = parse_number<std::uint64_t>(word);
    if (!count.has_value() || *count > (std::uint64_t{1} << 40U)) {
      bad_input("option", "'{}' is no count; accepted: whole numbers up to 2^40, separated by commas", word);
    }
    counts.push_back(*count);
  }
  return counts;
}

hccl::BlockCounts block_counts(hccl::Collective collective, Rank ranks, std::vector<std::uint64_t> counts) {
  const bool pairs = hccl::counts_pairs(collective);
  const std::size_t wanted = pairs ? std::size_t{ranks} * ranks : ranks;
  if (counts.size() != wanted) {
    bad_input("operation", "{} among {} ranks needs {} counts{}; {} are given", name_of(collective), ranks, wanted,
              pairs ? ", of every pair" : ", one for each rank", counts.size());
  }
  return pairs ? hccl::BlockCounts::of_pairs(ranks, std::move(counts))
               : hccl::BlockCounts::of_blocks(std::move(counts));
}

}  // namespace hcclsim::study
