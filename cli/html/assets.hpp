#pragma once

#include <string_view>

/// The files of assets/, and Chart.js, as the build found them (cmake/EmbedFiles.cmake writes their definitions).
namespace hcclsim::cli::assets {

extern const std::string_view page_html;
extern const std::string_view page_css;
extern const std::string_view page_js;  ///< all scripts of assets/, in the order of CMakeLists.txt
extern const std::string_view chart_js;

}  // namespace hcclsim::cli::assets
