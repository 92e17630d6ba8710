#include "study/profile/device_choice.hpp"

#include <set>

namespace hcclsim::study {
namespace {

/// Whole numbers by their value.
struct IsLower {
  bool operator()(const std::string& a, const std::string& b) const {
    return a.size() != b.size() ? a.size() < b.size() : a < b;
  }
};

}  // namespace

DeviceChoice choose_device(std::span<const std::string> devices) {
  const std::set<std::string, IsLower> all(devices.begin(), devices.end());
  return {*all.begin(), all.size() - 1};
}

}  // namespace hcclsim::study
