#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "hccl/compression/hook.hpp"

namespace hcclsim::test {

/// Collectives of a hook without schedules: sums in fp64, rounded to `type`.
template <typename Real>
class PlainExchange : public hccl::HookExchange<Real> {
 public:
  explicit PlainExchange(DataType type) : type_(type) {}

  void sum_plain(std::span<const std::span<Real>> of_ranks) override { add_up(of_ranks); }
  void sum(hccl::HookAction action, std::span<const std::span<Real>> of_ranks) override {
    actions.push_back(action);
    add_up(of_ranks);
  }
  void gather_values(std::span<const std::span<const Real>> own, std::span<const std::span<Real>> all) override {
    actions.push_back(hccl::HookAction::gather_values);
    join(own, all);
  }
  void gather_places(std::span<const std::span<const std::uint32_t>> own,
                     std::span<const std::span<std::uint32_t>> all) override {
    actions.push_back(hccl::HookAction::gather_places);
    join(own, all);
  }

  std::vector<hccl::HookAction> actions;  ///< collectives so far, but for those of plain steps
  std::uint64_t sent = 0;                 ///< elements of all sums

 private:
  void add_up(std::span<const std::span<Real>> of_ranks) {
    std::vector<double> exact(of_ranks.front().size());
    for (const std::span<Real> values : of_ranks) {
      for (std::size_t i = 0; i < exact.size(); ++i) exact[i] += values[i];
    }
    std::vector<Real> sum(exact.begin(), exact.end());
    if constexpr (std::is_same_v<Real, float>) device::round_in_place(type_, device::Overflow::infinity, sum);
    for (const std::span<Real> values : of_ranks) std::ranges::copy(sum, values.begin());
    sent += sum.size();
  }

  template <typename Own, typename All>
  void join(std::span<const Own> own, std::span<const All> all) {
    for (const All& to : all) {
      auto place = to.begin();
      for (const Own& values : own) place = std::ranges::copy(values, place).out;
    }
  }

  DataType type_;
};

/// Spans of all of some vectors.
template <typename Real>
std::vector<std::span<Real>> spans_of(std::vector<std::vector<Real>>& values) {
  return {values.begin(), values.end()};
}

}  // namespace hcclsim::test
