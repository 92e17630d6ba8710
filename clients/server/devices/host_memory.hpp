#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/units.hpp"
#include "clients/server/hosts/hosts.hpp"

/// The memory of programs' hosts, which is read and written in their processes. The functions tell what is wrong;
/// empty: nothing.
namespace hcclsim::clients {

std::string read_host(const HostProcess& process, std::byte* to, std::uint64_t from, Bytes bytes);
std::string write_host(const HostProcess& process, std::byte* from, std::uint64_t to, Bytes bytes);
std::string fill_host(const HostProcess& process, int byte, std::uint64_t to, Bytes bytes);

}  // namespace hcclsim::clients
