#pragma once

#include <string>

#include "study/compare/tune/compression_search.hpp"

/// What `hcclsim tune --compress` prints.
namespace hcclsim::cli {

[[nodiscard]] std::string compression_text(const study::CompressionSearch& search);
[[nodiscard]] std::string compression_json(const study::CompressionSearch& search);

}  // namespace hcclsim::cli
