#pragma once

#include <array>
#include <cstdint>

/// What a program and the simulator say to each other. Every thread of a program has a socket of its own; it asks, and
/// goes on when the answer is there. The answer to its first message is the token: only the thread that has it runs.
///
/// Both sides are built together and run on one machine, so messages are structures as they lie in memory, each
/// followed by so many bytes.
namespace hcclsim::clients {

/// Environment variables of a program.
inline constexpr const char* socket_variable = "HCCLSIM_EXEC_SOCKET";    ///< abstract name of the simulator's socket
inline constexpr const char* process_variable = "HCCLSIM_EXEC_PROCESS";  ///< number of the process
inline constexpr const char* count_variable = "HCCLSIM_EXEC_PROCESSES";

/// With which a process ends that has lost its connection.
inline constexpr int lost_status = 70;

/// What is asked for, with the numbers that go along, and those of the answer behind the arrow. Addresses are numbers.
/// The names of functions that ask are in the first bytes, where the simulator's messages need them.
enum class Call : std::uint32_t {
  // Processes and threads
  begin_process,  ///< process, thread id of the system → process
  begin_fork,     ///< from a new socket, for a child that is about to be forked → process
  begin_thread,   ///< from the socket of the new thread, before it starts, then by it: thread id → process, thread
  end_thread,
  join_thread,  ///< thread
  yield,        ///< kind, whether nothing has changed since the last time
  date,         ///< → bits of a double
  // Devices and memory
  device_count,  ///< → devices
  set_device,    ///< device, whether a reset belongs to it
  get_device,    ///< → device
  reset_device,  ///< device, whether however often it was set
  finalize,      ///< the process gives up all devices
  peer_access,   ///< device, whether it begins
  soc_name,
  set_saturation,   ///< device as one saturates, or not
  device_topology,  ///< device, other device → links
  allocate,         ///< bytes → address
  free,             ///< address
  free_host,        ///< address of the program's own memory, bytes
  memory_info,      ///< → free, total
  copy,  ///< destination, its room, source, bytes, kind, stream, whether at once, whether the source is pinned
  fill,  ///< address, its room, value, bytes, stream, whether at once, whether it is pinned memory of the program
  reserve_address,    ///< bytes → address
  release_address,    ///< address
  allocate_physical,  ///< bytes, device → handle
  free_physical,      ///< handle
  map_memory,         ///< address, bytes, offset, handle
  unmap_memory,       ///< address
  // Streams and events
  create_stream,       ///< → stream
  destroy_stream,      ///< stream, whether what is in it does not matter
  synchronize_stream,  ///< stream, milliseconds
  query_stream,        ///< stream → done
  synchronize_device,  ///< milliseconds
  create_event,        ///< flags, EventMaker → event
  destroy_event,       ///< event
  record_event,        ///< event, stream
  wait_event,          ///< stream, event
  reset_event,         ///< event, stream
  synchronize_event,   ///< event, milliseconds
  query_event,         ///< event → all records done, all waits done, a record is done that was not reset
  elapsed_time,        ///< event, event → bits of a float
  event_time,          ///< event → microseconds
  launch_kernel,       ///< bits of a double (seconds), stream; the name
  launch_function,     ///< stream, function, argument, whether it blocks, whether a subscriber runs it
  subscribe,           ///< thread of the program, stream
  unsubscribe,         ///< thread of the program, stream
  next_function,       ///< thread of the program or none, milliseconds → function, argument, ticket
  function_done,       ///< ticket
  // Communicators and communication
  root_info,             ///< → number
  begin_communicator,    ///< ranks, root, rank; HcclCommConfig or nothing → communicator
  begin_from_table,      ///< rank, bytes of the settings; HcclCommConfig and the file's path → communicator
  begin_all,             ///< the devices → communicators
  begin_sub,             ///< communicator, sub-communicator, rank, bytes of the settings; HcclCommConfig and the ranks
  destroy_communicator,  ///< communicator
  communicator_facts,    ///< communicator → size, rank; the name
  async_error,           ///< communicator → HcclResult
  set_deterministic,     ///< value
  get_deterministic,     ///< → value
  suspend,               ///< communicator, whether it goes on again
  collective,            ///< CollectiveArguments and counts
  batch,                 ///< communicator, stream, whether of a group's messages; BatchItems
  begin_group,
  end_group,
  set_range,         ///< communicator, address, bytes
  unset_range,       ///< communicator, address
  activate_range,    ///< communicator, address, bytes, handle
  deactivate_range,  ///< communicator, address
  begin_window,      ///< communicator, address, bytes → window
  end_window,        ///< window
  find_window,       ///< communicator, address, bytes → window, offset
  status_by_name,    ///< name of a communicator → HcclCommStatus
  graph_layers,      ///< communicator → numbers
  graph_ranks,       ///< communicator, layer → numbers
  graph_type,        ///< communicator, layer → CommTopo
  graph_sizes,       ///< communicator, layer → numbers
  graph_link,        ///< communicator, layer, source, destination → CommProtocol; two LinkEnds or nothing
  // The processes among themselves
  exchange,  ///< communicator, sequence number, rank, ranks; numbers of the processes, then bytes → the bytes of all
  send_bytes,     ///< communicator, source, destination process, tag; bytes
  receive_bytes,  ///< communicator, source or any, tag or any; → source, tag, the bytes
  abort,          ///< status
};

/// Does not change what others may wait for: it only looks.
constexpr bool only_looks(Call call) {
  return call == Call::yield || call == Call::date || call == Call::query_stream || call == Call::query_event ||
         call == Call::async_error || call == Call::status_by_name;
}

/// The function that has made an event, on which it depends what a wait does that comes before any record.
enum class EventMaker : std::uint64_t { create, create_with_flag, create_ex_with_flag };

/// Why a thread yields.
enum class Yield : std::uint64_t { lock, poll };

struct Request {
  Call call{};
  std::uint32_t bytes = 0;  ///< that follow
  std::array<std::uint64_t, 8> values{};
};

struct Reply {
  std::int32_t status = 0;  ///< an aclError or HcclResult
  std::uint32_t bytes = 0;  ///< that follow: the answer, or what went wrong
  std::array<std::uint64_t, 4> values{};
};

inline constexpr std::uint64_t none = ~std::uint64_t{0};

/// As HCCL's functions are called; `collective` by the order of `CollectiveCall`.
enum class CollectiveCall : std::uint32_t {
  allreduce,
  broadcast,
  reduce_scatter,
  reduce_scatter_v,
  scatter,
  allgather,
  allgather_v,
  reduce,
  alltoall,
  alltoall_v,
  alltoall_vc,
  barrier,
  send,
  receive,
};

/// Counts that follow: of reduce_scatter_v and allgather_v counts and places of all blocks; of alltoall_v counts and
/// places of what is sent, then of what is received; of alltoall_vc all counts.
struct CollectiveArguments {
  CollectiveCall collective{};
  std::uint32_t type = 0;  ///< HcclDataType
  std::uint32_t op = 0;    ///< HcclReduceOp
  std::uint32_t peer = 0;  ///< root, source or destination
  std::uint64_t send = 0;
  std::uint64_t receive = 0;
  std::uint64_t count = 0;
  std::uint64_t communicator = 0;
  std::uint64_t stream = 0;
};

/// An end of a link of the rank graph.
struct LinkEnd {
  std::uint32_t device = 0;
  std::uint32_t server = 0;
  std::uint32_t super_pod = 0;
};

struct BatchItem {
  std::uint32_t receives = 0;
  std::uint32_t type = 0;
  std::uint32_t peer = 0;
  std::uint32_t unused = 0;
  std::uint64_t address = 0;
  std::uint64_t count = 0;
};

}  // namespace hcclsim::clients
