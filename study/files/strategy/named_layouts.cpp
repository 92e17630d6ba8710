#include "study/files/strategy/named_layouts.hpp"

#include <cstdint>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "hccl/parallel/layout/named_device_matrix.hpp"

namespace hcclsim::study {
namespace {

class NamedLayouts {
 public:
  NamedLayouts(const std::string& where, const Json& table) : where_(where), table_(table) {}

  [[nodiscard]] hccl::LayoutStrategy read() const {
    const hccl::NamedDeviceMatrix matrix(sizes(), names("alias_name", list("alias_name")));
    hccl::LayoutStrategy layout{.matrix = matrix.devices(), .inputs = {}};
    for (const Json& tensor : list("strategy")) layout.inputs.push_back(matrix.map(axes("strategy", tensor)));
    if (const Json* output = table_.find("out_strategy")) layout.output = matrix.map(axes("out_strategy", *output));
    return layout;
  }

 private:
  [[nodiscard]] const Json& list(const char* key) const {
    const Json* found = table_.find(key);
    if (found == nullptr) {
      bad_input("value-error", "{}: {} is missing; a Layout has device_matrix, alias_name and a strategy", where_, key);
    }
    if (!found->is_array()) bad_input("type-error", "{}: {} is a list, got {}", where_, key, found->dump());
    return *found;
  }

  [[nodiscard]] std::vector<std::uint32_t> sizes() const {
    std::vector<std::uint32_t> sizes;
    for (const Json& size : list("device_matrix")) {
      if (!size.is_number_integer()) {
        bad_input("type-error", "{}: device_matrix has whole numbers, got {}", where_, size.dump());
      }
      const auto number = size.get<std::int64_t>();
      if (number < 1 || number > std::int64_t{UINT32_MAX}) {
        bad_input("value-error", "{}: device_matrix has sizes from 1 to {}, got {}", where_, UINT32_MAX, number);
      }
      sizes.push_back(static_cast<std::uint32_t>(number));
    }
    return sizes;
  }

  [[nodiscard]] std::vector<std::string> names(const char* key, const Json& json) const {
    std::vector<std::string> names;
    for (const Json& name : json) {
      if (name.is_number()) {
        bad_input(key == std::string("alias_name") ? "type-error" : "value-error",
                  "{}: {} has names of axes, got {}; numbers of parts go without device_matrix", where_, key,
                  name.dump());
      }
      if (!name.is_string()) bad_input("type-error", "{}: {} has names of axes, got {}", where_, key, name.dump());
      names.push_back(name.text());
    }
    return names;
  }

  /// Of each axis of a tensor, what cuts it.
  [[nodiscard]] std::vector<std::vector<std::string>> axes(const char* key, const Json& tensor) const {
    if (!tensor.is_array()) {
      bad_input("type-error", "{}: {} has a list of names for each tensor, got {}", where_, key, tensor.dump());
    }
    std::vector<std::vector<std::string>> axes;
    for (const Json& axis : tensor) axes.push_back(names(key, axis.is_array() ? axis : Json::array({axis})));
    return axes;
  }

  const std::string& where_;
  const Json& table_;
};

}  // namespace

bool has_named_layouts(const Json& table) { return table.contains("device_matrix") || table.contains("alias_name"); }

hccl::LayoutStrategy read_named_layouts(const std::string& where, const Json& table) {
  try {
    return NamedLayouts(where, table).read();
  } catch (const Error& error) {
    const std::string message = error.what();
    if (message.starts_with(where)) throw;
    throw Error(error.code(), error.kind(), where + ": " + message);
  }
}

}  // namespace hcclsim::study
