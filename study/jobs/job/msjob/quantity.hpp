#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace hcclsim::study {

/// A quantity of Kubernetes in thousandths of a unit: "2", "500m", "1.5", "64Gi", "1e3", "128M" (suffixes n, u, m, k,
/// M, G, T, P, E and Ki to Ei), rounded up as Kubernetes does. Nothing for another text, a negative amount, and one
/// beyond what 64 bits hold.
[[nodiscard]] std::optional<std::uint64_t> parse_k8s_quantity(std::string_view text);

}  // namespace hcclsim::study
