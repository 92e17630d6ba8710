#include "study/communication/measure/sizes.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace hcclsim::study {
namespace {

constexpr Bytes coarse_from = Bytes{16} << 20U;
constexpr Bytes coarse_unit = 512;
/// An alltoall of at least this number of elements for every rank has blocks of multiples of it.
constexpr std::uint64_t alltoall_unit = 128;
constexpr std::size_t most_sizes = 10000;

bool has_blocks(hccl::Collective collective) {
  return hccl::Operation{.ranks = 2, .collective = collective}.blocks() > 1;
}

std::uint64_t round_up(std::uint64_t number, std::uint64_t unit) { return (number + unit - 1) / unit * unit; }

Bytes round_down(Bytes size, Rank ranks) {
  const Bytes unit = size > coarse_from ? ranks * coarse_unit : ranks;
  return size == 0 ? 0 : std::max<Bytes>(size, ranks) / unit * unit;
}

}  // namespace

std::vector<Bytes> sizes_of(const SizeRange& range, hccl::Collective collective, Rank ranks) {
  if (range.last < range.first) bad_input("option", "-e {}: less than -b {}", range.last, range.first);
  if (range.factor.has_value() && !(*range.factor > 1)) {
    bad_input("option", "-f {}: sizes grow by a factor above 1", *range.factor);
  }
  if (range.factor.has_value() && range.first == 0 && range.last > 0) {
    bad_input("option", "-b 0: no factor (-f) leads from 0 to another size; give a step (-i) or -b 1");
  }
  Bytes first = range.first;
  Bytes last = range.last;
  Bytes step = range.step.value_or(std::max<Bytes>((last - first) / 10, 1));
  if (has_blocks(collective)) {
    first = round_down(first, ranks);
    last = round_down(last, ranks);
    step = round_up(step, ranks);
  }
  std::vector<Bytes> sizes;
  for (Bytes size = first; size <= last;) {
    sizes.push_back(size);
    if (sizes.size() > most_sizes) {
      bad_input("option", "-b {} -e {}: more than {} sizes; take a larger step (-i) or a factor (-f)", range.first,
                range.last, most_sizes);
    }
    const Bytes next =
        range.factor.has_value() ? static_cast<Bytes>(static_cast<double>(size) * *range.factor) : size + step;
    if (range.factor.has_value() && next == size && size < last) {
      bad_input("option", "-f {}: leads from {} bytes to no larger size; give a larger factor or a step (-i)",
                *range.factor, size);
    }
    if (next == size) break;
    size = next;
  }
  return sizes;
}

std::uint64_t elements_of_size(Bytes size, hccl::Collective collective, Rank ranks, DataType type) {
  std::uint64_t elements = (size + size_of(type) - 1) / size_of(type);
  if (!has_blocks(collective)) return elements;
  if (collective == hccl::Collective::alltoall && elements >= ranks * alltoall_unit) {
    elements = round_up(elements, ranks * alltoall_unit);
  }
  return (elements + ranks - 1) / ranks;
}

}  // namespace hcclsim::study
