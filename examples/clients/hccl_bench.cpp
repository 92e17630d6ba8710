// A benchmark of HCCL's collectives, with the options and the table of hccl_test: one process for each NPU.
//
//   g++ -O1 -o hccl_bench hccl_bench.cpp $(hcclsim exec --flags)
//   hcclsim exec --platform atlas800t-a2 --processes 8 -- ./hccl_bench allreduce -b 8K -e 64M -f 2
//
// For every size: warm-up calls, then timed ones, back to back between two events; the time is that of the slowest
// rank. Data depend on rank and element, and every element of the result is checked.

#include <hccl/hccl.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "world.hpp"

namespace {

struct Options {
  std::string collective = "allreduce";
  std::uint64_t first = 64U << 20U;
  std::uint64_t last = 64U << 20U;
  double factor = 0;
  std::uint64_t step = 0;
  std::string type = "fp32";
  std::string op = "sum";
  std::uint32_t root = 0;
  int iterations = 20;
  int warmups = 10;
  bool check = true;
};

struct Type {
  HcclDataType hccl;
  std::size_t bytes;
};

const std::map<std::string, Type> types{{"int8", {HCCL_DATA_TYPE_INT8, 1}},     {"int16", {HCCL_DATA_TYPE_INT16, 2}},
                                        {"int32", {HCCL_DATA_TYPE_INT32, 4}},   {"fp16", {HCCL_DATA_TYPE_FP16, 2}},
                                        {"fp32", {HCCL_DATA_TYPE_FP32, 4}},     {"int64", {HCCL_DATA_TYPE_INT64, 8}},
                                        {"uint64", {HCCL_DATA_TYPE_UINT64, 8}}, {"uint8", {HCCL_DATA_TYPE_UINT8, 1}},
                                        {"uint16", {HCCL_DATA_TYPE_UINT16, 2}}, {"uint32", {HCCL_DATA_TYPE_UINT32, 4}},
                                        {"fp64", {HCCL_DATA_TYPE_FP64, 8}},     {"bfp16", {HCCL_DATA_TYPE_BFP16, 2}}};
const std::map<std::string, HcclReduceOp> ops{
    {"sum", HCCL_REDUCE_SUM}, {"prod", HCCL_REDUCE_PROD}, {"max", HCCL_REDUCE_MAX}, {"min", HCCL_REDUCE_MIN}};

[[noreturn]] void usage(const std::string& problem) {
  std::fprintf(stderr,
               "%s\nusage: hccl_bench COLLECTIVE [-b SIZE] [-e SIZE] [-f FACTOR | -i STEP] [-d TYPE] [-o OP] [-r ROOT]"
               " [-n ITERATIONS] [-w WARMUPS] [-c 0|1]\n"
               "COLLECTIVE: allreduce broadcast reduce reducescatter allgather scatter alltoall\n",
               problem.c_str());
  std::exit(2);
}

std::uint64_t parse_size(const char* text) {
  char* end = nullptr;
  std::uint64_t size = std::strtoull(text, &end, 10);
  const std::string units = "KMG";
  if (end != text && *end != '\0') {
    const std::size_t unit = units.find(static_cast<char>(std::toupper(*end)));
    if (unit == std::string::npos) usage(std::string("no size: ") + text);
    size <<= 10 * (unit + 1);
  } else if (end == text) {
    usage(std::string("no size: ") + text);
  }
  return size;
}

Options parse(int argc, char** argv) {
  Options options;
  if (argc < 2 || argv[1][0] == '-') usage("no collective");
  options.collective = argv[1];
  for (int i = 2; i < argc; i += 2) {
    const std::string name = argv[i];
    if (i + 1 >= argc) usage(name + " needs a value");
    const char* const value = argv[i + 1];
    if (name == "-b")
      options.first = parse_size(value);
    else if (name == "-e")
      options.last = parse_size(value);
    else if (name == "-f")
      options.factor = std::atof(value);
    else if (name == "-i")
      options.step = parse_size(value);
    else if (name == "-d")
      options.type = value;
    else if (name == "-o")
      options.op = value;
    else if (name == "-r")
      options.root = static_cast<std::uint32_t>(std::atoi(value));
    else if (name == "-n")
      options.iterations = std::max(1, std::atoi(value));
    else if (name == "-w")
      options.warmups = std::atoi(value);
    else if (name == "-c")
      options.check = std::atoi(value) != 0;
    else
      usage("unknown option " + name);
  }
  if (types.count(options.type) == 0) usage("no type: " + options.type);
  if (ops.count(options.op) == 0) usage("no operation: " + options.op);
  return options;
}

/// Element i of what a rank gives: small numbers, so that results are exact in every type.
int given(std::uint32_t rank, std::uint64_t element, const std::string& op) {
  if (op == "prod") return (rank + element) % 5 == 0 && rank < 3 ? 2 : 1;
  return static_cast<int>((rank * 7 + element * 3) % 5);
}

template <typename Value>
void put(std::vector<char>& bytes, std::uint64_t element, Value value) {
  std::memcpy(bytes.data() + element * sizeof value, &value, sizeof value);
}

void put(std::vector<char>& bytes, std::uint64_t element, int value, HcclDataType type) {
  switch (type) {
    case HCCL_DATA_TYPE_INT8:
    case HCCL_DATA_TYPE_UINT8:
      return put(bytes, element, static_cast<std::int8_t>(value));
    case HCCL_DATA_TYPE_INT16:
    case HCCL_DATA_TYPE_UINT16:
      return put(bytes, element, static_cast<std::int16_t>(value));
    case HCCL_DATA_TYPE_INT32:
    case HCCL_DATA_TYPE_UINT32:
      return put(bytes, element, static_cast<std::int32_t>(value));
    case HCCL_DATA_TYPE_INT64:
    case HCCL_DATA_TYPE_UINT64:
      return put(bytes, element, static_cast<std::int64_t>(value));
    case HCCL_DATA_TYPE_FP16:
      return put(bytes, element, aclFloatToFloat16(static_cast<float>(value)));
    case HCCL_DATA_TYPE_BFP16: {
      const auto wide = static_cast<float>(value);
      std::uint32_t bits = 0;
      std::memcpy(&bits, &wide, sizeof bits);
      return put(bytes, element, static_cast<std::uint16_t>(bits >> 16U));
    }
    case HCCL_DATA_TYPE_FP64:
      return put(bytes, element, static_cast<double>(value));
    default:
      return put(bytes, element, static_cast<float>(value));
  }
}

/// The benchmark of one collective.
class Bench {
 public:
  Bench(Options options, HcclComm comm, std::uint32_t rank, std::uint32_t ranks)
      : options_(std::move(options)), comm_(comm), rank_(rank), ranks_(ranks), type_(types.at(options_.type)) {
    CHECK(aclrtCreateStream(&stream_));
    CHECK(aclrtCreateEvent(&begin_));
    CHECK(aclrtCreateEvent(&end_));
    const std::string& name = options_.collective;
    in_blocks_ = name == "reducescatter" || name == "scatter" || name == "alltoall" ? ranks_ : 1;
    out_blocks_ = name == "allgather" || name == "alltoall" ? ranks_ : 1;
  }

  /// Elements of a payload, or of one of its blocks, as hccl_test has them.
  [[nodiscard]] std::uint64_t count_of(std::uint64_t size, bool has_blocks) const {
    std::uint64_t elements = (size + type_.bytes - 1) / type_.bytes;
    if (!has_blocks) return std::max<std::uint64_t>(elements, 1);
    const std::uint64_t unit = options_.collective == "alltoall" ? ranks_ * std::uint64_t{128} : 1;
    if (elements >= unit) elements = (elements + unit - 1) / unit * unit;
    return std::max<std::uint64_t>((elements + ranks_ - 1) / ranks_, 1);
  }

  void run(std::uint64_t size) {
    const bool has_blocks = in_blocks_ > 1 || out_blocks_ > 1;
    if (has_blocks) {
      const std::uint64_t unit = ranks_ * (size > (16U << 20U) ? 512U : 1U);
      size = std::max<std::uint64_t>(size / unit, 1) * unit;
    }
    const std::uint64_t count = count_of(size, has_blocks);
    const std::size_t in_bytes = in_blocks_ * count * type_.bytes;
    const std::size_t out_bytes = out_blocks_ * count * type_.bytes;
    void* send = nullptr;
    void* receive = nullptr;
    CHECK(aclrtMalloc(&send, in_bytes, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK(aclrtMalloc(&receive, out_bytes, ACL_MEM_MALLOC_HUGE_FIRST));
    std::vector<char> data(in_bytes);
    for (std::uint64_t i = 0; i < in_blocks_ * count; ++i) put(data, i, given(rank_, i, options_.op), type_.hccl);
    CHECK(aclrtMemcpy(send, in_bytes, data.data(), in_bytes, ACL_MEMCPY_HOST_TO_DEVICE));
    for (int i = 0; i < options_.warmups; ++i) call(send, receive, count);
    CHECK(aclrtRecordEvent(begin_, stream_));
    for (int i = 0; i < options_.iterations; ++i) call(send, receive, count);
    CHECK(aclrtRecordEvent(end_, stream_));
    CHECK(aclrtSynchronizeStream(stream_));
    float milliseconds = 0;
    CHECK(aclrtEventElapsedTime(&milliseconds, begin_, end_));
    double us = static_cast<double>(milliseconds * 1000) / options_.iterations;  // rounded as in hccl_test
    MPI_Allreduce(MPI_IN_PLACE, &us, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);

    int wrong = options_.check && !is_right(send, receive, count) ? 1 : 0;
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    const std::uint64_t payload = count * type_.bytes * std::max(in_blocks_, out_blocks_);
    if (rank_ == 0) {
      std::printf("%-18llu| %-16.2f| %-22.5f| %s\n", static_cast<unsigned long long>(size), us,
                  static_cast<double>(payload) / us / 1e3,
                  !options_.check ? "NULL"
                  : wrong == 0    ? "success"
                                  : "failed");
    }
    wrong_ += wrong;
    CHECK(aclrtFree(send));
    CHECK(aclrtFree(receive));
  }

  [[nodiscard]] int wrong() const { return wrong_; }

 private:
  void call(void* send, void* receive, std::uint64_t count) {
    const std::string& name = options_.collective;
    const HcclReduceOp op = ops.at(options_.op);
    if (name == "allreduce")
      CHECK(HcclAllReduce(send, receive, count, type_.hccl, op, comm_, stream_));
    else if (name == "broadcast")
      CHECK(HcclBroadcast(send, count, type_.hccl, options_.root, comm_, stream_));
    else if (name == "reduce")
      CHECK(HcclReduce(send, receive, count, type_.hccl, op, options_.root, comm_, stream_));
    else if (name == "reducescatter")
      CHECK(HcclReduceScatter(send, receive, count, type_.hccl, op, comm_, stream_));
    else if (name == "allgather")
      CHECK(HcclAllGather(send, receive, count, type_.hccl, comm_, stream_));
    else if (name == "scatter")
      CHECK(HcclScatter(send, receive, count, type_.hccl, options_.root, comm_, stream_));
    else if (name == "alltoall")
      CHECK(HcclAlltoAll(send, count, type_.hccl, receive, count, type_.hccl, comm_, stream_));
    else
      usage("no collective: " + name);
  }

  /// What element i of all ranks becomes.
  [[nodiscard]] int reduced(std::uint64_t element) const {
    int result = given(0, element, options_.op);
    for (std::uint32_t rank = 1; rank < ranks_; ++rank) {
      const int next = given(rank, element, options_.op);
      if (options_.op == "sum")
        result += next;
      else if (options_.op == "prod")
        result *= next;
      else
        result = options_.op == "max" ? std::max(result, next) : std::min(result, next);
    }
    return result;
  }

  [[nodiscard]] int expected(std::uint64_t element, std::uint64_t count) const {
    const std::string& name = options_.collective;
    const auto block = static_cast<std::uint32_t>(element / count);
    const std::uint64_t own = rank_ * count;
    if (name == "allreduce" || name == "reduce") return reduced(element);
    if (name == "reducescatter") return reduced(own + element);
    if (name == "allgather") return given(block, element % count, options_.op);
    if (name == "alltoall") return given(block, own + element % count, options_.op);
    return given(options_.root, name == "scatter" ? own + element : element, options_.op);
  }

  [[nodiscard]] bool is_right(void* send, void* receive, std::uint64_t count) const {
    if (options_.collective == "reduce" && rank_ != options_.root) return true;
    const std::uint64_t elements = out_blocks_ * count;
    std::vector<char> result(elements * type_.bytes);
    std::vector<char> wanted(result.size());
    CHECK(aclrtMemcpy(result.data(), result.size(), options_.collective == "broadcast" ? send : receive, result.size(),
                      ACL_MEMCPY_DEVICE_TO_HOST));
    for (std::uint64_t i = 0; i < elements; ++i) put(wanted, i, expected(i, count), type_.hccl);
    return result == wanted;
  }

  Options options_;
  HcclComm comm_;
  std::uint32_t rank_;
  std::uint32_t ranks_;
  Type type_;
  aclrtStream stream_ = nullptr;
  aclrtEvent begin_ = nullptr;
  aclrtEvent end_ = nullptr;
  std::uint64_t in_blocks_ = 1;
  std::uint64_t out_blocks_ = 1;
  int wrong_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  const World world = begin_world(argc, argv);
  if (world.rank == 0) std::printf("data_size(Bytes): | aveg_time(us):  | alg_bandwidth(GB/s):  | check_result:\n");
  Bench bench(options, world.comm, world.rank, world.ranks);
  for (std::uint64_t size = options.first; size <= options.last;) {
    bench.run(size);
    const std::uint64_t step = options.step > 0 ? options.step : options.last - options.first;
    const std::uint64_t next =
        options.factor > 1 ? static_cast<std::uint64_t>(static_cast<double>(size) * options.factor) : size + step;
    if (next <= size) break;
    size = next;
  }
  end_world(world);
  return bench.wrong() == 0 ? 0 : 1;
}
