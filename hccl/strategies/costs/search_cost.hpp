#pragma once

#include "hccl/strategies/options.hpp"

/// The cost of a strategy, of a redistribution or of many of them together, as MindSpore's cost model counts it: bytes
/// that are touched, sent or kept, not seconds.
namespace hcclsim::hccl {

struct SearchCost {
  double computation = 0;            ///< bytes that are computed on
  double forward = 0;                ///< bytes sent in the forward pass
  double communication = 0;          ///< bytes sent in a step
  double partial_communication = 0;  ///< of those, what is not hidden: γ of what parameters send, all of the rest
  double memory = 0;                 ///< bytes kept for the backward pass

  SearchCost& operator+=(const SearchCost& other);
  bool operator==(const SearchCost&) const = default;
};

[[nodiscard]] inline SearchCost operator+(SearchCost a, const SearchCost& b) { return a += b; }

/// What a search makes as small as it can: α · computation + β · communication that is not hidden; when the network is
/// only applied, β · communication of the forward pass.
[[nodiscard]] double objective(const SearchCost& cost, const SearchOptions& options);
/// The second of the two figures that lists of costs are sorted by.
[[nodiscard]] double counted_communication(const SearchCost& cost, const SearchOptions& options);
/// What a message of some bytes costs in practice; none costs nothing.
[[nodiscard]] double practical_bytes(double bytes, const SearchOptions& options);

}  // namespace hcclsim::hccl
