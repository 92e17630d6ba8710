#pragma once

#include "study/link_sources.hpp"

/// Where the speeds of links come from, by the names that this folder's printing has.
namespace hcclsim::cli {

using study::link_sources;
using study::LinkSource;
using study::title_of;

}  // namespace hcclsim::cli
