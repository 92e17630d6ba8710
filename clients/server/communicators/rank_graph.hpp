#pragma once

#include "clients/server/communicators/communicators.hpp"

/// How the NPUs of a communicator are connected, for programs that ask: layer 0 is the server, layer 1 what connects
/// servers, of one super-pod if there are several, and layer 2 what connects super-pods.
namespace hcclsim::clients {

/// Answers to the questions `graph_…`.
[[nodiscard]] Result rank_graph(const Core& core, const ClientCommunicator& own, const Question& question);

}  // namespace hcclsim::clients
