#include "hccl/training/numerics/checkpoint.hpp"

#include <fmt/ranges.h>
#include <hccl/training/numerics/checkpoint.pb.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "base/error.hpp"

namespace hcclsim::hccl {

namespace {

static_assert(std::endian::native == std::endian::little, "the numbers of a file are little-endian");

constexpr std::string_view magic = "HCCLCKPT";
constexpr std::uint32_t version = 1;
constexpr std::uint64_t preamble_bytes = magic.size() + sizeof(version);

/// Before every record; a length of 0 instead of one marks the end.
struct Frame {
  std::uint32_t payload_bytes = 0;
  std::uint32_t checksum = 0;  ///< CRC-32 of the length's bytes and the payload
};

/// The last bytes of a file.
struct Footer {
  std::uint32_t end_mark = 0;
  std::uint32_t checksum = 0;  ///< CRC-32 of the preamble and all frames, and through these of every byte
  std::uint64_t records = 0;
};

/// Iterations that may be done: the jitter of their kernels is drawn by a number of 32 bits.
constexpr std::uint64_t most_iterations = std::uint64_t{1} << 31U;

/// A piece of a tensor has at most 4 MiB, a record at most this, however large the network.
constexpr std::size_t piece_elements = std::size_t{1} << 20U;
constexpr std::uint32_t max_payload_bytes = 64U << 20U;

std::uint32_t crc(std::uint32_t before, const void* data, std::size_t bytes) {
  return static_cast<std::uint32_t>(::crc32_z(before, static_cast<const Bytef*>(data), bytes));
}

std::uint32_t crc_of_record(std::uint32_t payload_bytes, std::string_view payload) {
  return crc(crc(0, &payload_bytes, sizeof payload_bytes), payload.data(), payload.size());
}

std::uint32_t crc_of_preamble() { return crc(crc(0, magic.data(), magic.size()), &version, sizeof version); }

template <typename T>
T read_value(const InputFile& file, std::uint64_t offset) {
  T value;
  file.read(offset, std::as_writable_bytes(std::span(&value, 1)));
  return value;
}

using Options = google::protobuf::RepeatedPtrField<checkpoint_format::Option>;

void add_options(Options& to, const std::map<std::string, std::string>& from) {
  for (const auto& [key, value] : from) {
    checkpoint_format::Option& option = *to.Add();
    option.set_key(key);
    option.set_value(value);
  }
}

std::map<std::string, std::string> options_of(const Options& from) {
  std::map<std::string, std::string> options;
  for (const checkpoint_format::Option& option : from) options.emplace(option.key(), option.value());
  return options;
}

checkpoint_format::Record record_of(const Checkpoint& checkpoint) {
  checkpoint_format::Record record;
  checkpoint_format::Header& header = *record.mutable_header();
  header.set_model(checkpoint.model);
  for (const CheckpointParameter& parameter : checkpoint.parameters) {
    checkpoint_format::Parameter& entry = *header.add_parameters();
    entry.set_name(parameter.name);
    entry.mutable_shape()->Add(parameter.shape.begin(), parameter.shape.end());
  }
  for (const std::string& kind : checkpoint.tensors) header.add_tensors(kind);
  header.set_iteration(checkpoint.iteration);
  header.set_seed(checkpoint.seed);
  header.set_optimizer(checkpoint.optimizer);
  header.set_optimizer_steps(checkpoint.optimizer_steps);
  header.set_loss_scale(checkpoint.loss_scale);
  header.set_loss_scale_streak(checkpoint.loss_scale_streak);
  add_options(*header.mutable_options(), checkpoint.options);
  add_options(*header.mutable_settings(), checkpoint.settings);
  header.mutable_iteration_ends()->Add(checkpoint.iteration_ends.begin(), checkpoint.iteration_ends.end());
  if (checkpoint.hook.has_value()) {
    checkpoint_format::Hook& hook = *header.mutable_hook();
    hook.set_steps(checkpoint.hook->steps);
    hook.set_draws(checkpoint.hook->draws);
    hook.set_elements_before(checkpoint.hook->elements_before);
    hook.set_elements_after(checkpoint.hook->elements_after);
    hook.set_next_report(checkpoint.hook->next_report);
    for (const CheckpointHookTensor& tensor : checkpoint.hook->tensors) {
      checkpoint_format::HookTensor& entry = *hook.add_tensors();
      entry.set_bucket(tensor.bucket);
      entry.set_kind(tensor.kind);
      entry.set_rank(tensor.rank);
      entry.set_elements(tensor.elements);
    }
  }
  return record;
}

Checkpoint checkpoint_of(const checkpoint_format::Header& header) {
  Checkpoint checkpoint;
  checkpoint.model = header.model();
  for (const checkpoint_format::Parameter& parameter : header.parameters()) {
    checkpoint.parameters.push_back({parameter.name(), {parameter.shape().begin(), parameter.shape().end()}});
  }
  checkpoint.tensors.assign(header.tensors().begin(), header.tensors().end());
  checkpoint.iteration = header.iteration();
  checkpoint.seed = header.seed();
  checkpoint.optimizer = header.optimizer();
  checkpoint.optimizer_steps = header.optimizer_steps();
  checkpoint.loss_scale = header.loss_scale();
  checkpoint.loss_scale_streak = header.loss_scale_streak();
  checkpoint.options = options_of(header.options());
  checkpoint.settings = options_of(header.settings());
  checkpoint.iteration_ends.assign(header.iteration_ends().begin(), header.iteration_ends().end());
  if (header.has_hook()) {
    const checkpoint_format::Hook& hook = header.hook();
    checkpoint.hook = {hook.steps(), hook.draws(), hook.elements_before(), hook.elements_after(), hook.next_report()};
    for (const checkpoint_format::HookTensor& tensor : hook.tensors()) {
      checkpoint.hook->tensors.push_back({tensor.bucket(), tensor.kind(), tensor.rank(), tensor.elements()});
    }
  }
  return checkpoint;
}

/// As pieces name a tensor of the file: its kind and its number among those.
std::pair<std::uint32_t, std::uint32_t> name_of_tensor(const Checkpoint& checkpoint, std::size_t tensor) {
  const std::size_t parameters = checkpoint.parameters.size();
  const std::size_t of_parameters = parameters * checkpoint.tensors.size();
  if (tensor >= of_parameters) {
    return {static_cast<std::uint32_t>(checkpoint.tensors.size()), static_cast<std::uint32_t>(tensor - of_parameters)};
  }
  return {static_cast<std::uint32_t>(tensor / parameters), static_cast<std::uint32_t>(tensor % parameters)};
}

/// For messages: "the weights of fc.weight".
std::string title_of_tensor(const Checkpoint& checkpoint, std::size_t tensor) {
  const auto [kind, number] = name_of_tensor(checkpoint, tensor);
  if (kind < checkpoint.tensors.size()) {
    return fmt::format("the {} of {}", checkpoint.tensors[kind], checkpoint.parameters[number].name);
  }
  const CheckpointHookTensor& of_hook = checkpoint.hook->tensors[number];
  return fmt::format("the {} of bucket {}, rank {}", of_hook.kind, of_hook.bucket, of_hook.rank);
}

/// "512x2048" of the shape, or "one number".
std::string shape_text(const CheckpointParameter& parameter) {
  return parameter.shape.empty() ? "one number" : fmt::format("{}", fmt::join(parameter.shape, "x"));
}

/// The words of a user for an option of a header.
std::string title_of(const std::string& option) {
  static const std::map<std::string, std::string, std::less<>> titles{{"npus", "--npus"},
                                                                      {"input", "samples of the shape"},
                                                                      {"data", "--data"},
                                                                      {"shuffle", "--shuffle"},
                                                                      {"communication", "gradients sent in"},
                                                                      {"compute", "products in"},
                                                                      {"round", "numbers rounded to"},
                                                                      {"loss_scale", "a loss scale of the kind"},
                                                                      {"gradients_mean", "--gradients-mean"},
                                                                      {"replicas", "the number of replicas"},
                                                                      {"micro_batches", "the number of micro-batches"},
                                                                      {"compress", "--compress"},
                                                                      {"buckets", "the buckets"}};
  const auto found = titles.find(option);
  return found == titles.end() ? option : found->second;
}

/// Returns the value of an option in a header, or the value that a header without the option stands for.
std::string option_of(const Checkpoint& checkpoint, const std::string& option) {
  const auto found = checkpoint.options.find(option);
  if (found != checkpoint.options.end()) return found->second;
  if (option == "replicas" && checkpoint.options.contains("npus")) return checkpoint.options.at("npus");
  return option == "micro_batches" ? "1" : "none";
}

}  // namespace

std::uint64_t CheckpointParameter::elements() const {
  return std::accumulate(shape.begin(), shape.end(), std::uint64_t{1}, std::multiplies<>());
}

std::size_t Checkpoint::tensor_count() const {
  return parameters.size() * tensors.size() + (hook.has_value() ? hook->tensors.size() : 0);
}

std::uint64_t Checkpoint::elements_of(std::size_t tensor) const {
  const auto [kind, number] = name_of_tensor(*this, tensor);
  return kind < tensors.size() ? parameters[number].elements() : hook->tensors[number].elements;
}

void require_same_run(const std::string& path, const Checkpoint& file, const Checkpoint& run) {
  const auto require = [&](const auto& of_file, const auto& of_run, std::string_view what) {
    if (of_file == of_run) return;
    bad_input("checkpoint", "{} was saved with {} {}, this run has {}; load it with the settings it was saved with",
              path, what, of_file, of_run);
  };
  require(file.model, run.model, "model");
  require(file.parameters.size(), run.parameters.size(), "number of parameters");
  for (std::size_t i = 0; i < run.parameters.size(); ++i) {
    const CheckpointParameter& parameter = run.parameters[i];
    require(file.parameters[i].name, parameter.name, fmt::format("parameter {} named", i));
    require(shape_text(file.parameters[i]), shape_text(parameter), fmt::format("the shape of {}:", parameter.name));
  }
  require(file.optimizer, run.optimizer, "optimizer");
  require(fmt::format("{}", fmt::join(file.tensors, ", ")), fmt::format("{}", fmt::join(run.tensors, ", ")),
          "the tensors");
  require(file.seed, run.seed, "seed");
  const std::string compress = "compress";
  require(option_of(file, compress), option_of(run, compress), title_of(compress));  // before what follows from it
  for (const auto& [key, value] : run.options) require(option_of(file, key), value, title_of(key));
  for (const auto& [key, value] : file.options) require(value, option_of(run, key), title_of(key));
}

std::vector<std::string> changed_settings(const Checkpoint& file, const Checkpoint& run) {
  std::vector<std::string> changes;
  for (const auto& [key, value] : run.settings) {
    const auto found = file.settings.find(key);
    if (found == file.settings.end() || found->second == value) continue;
    changes.push_back(fmt::format("{} {} -> {}", key, found->second, value));
  }
  return changes;
}

CheckpointWriter::CheckpointWriter(const std::string& path, const Checkpoint& checkpoint)
    : file_(path), checkpoint_(checkpoint), checksum_(crc_of_preamble()) {
  write_bytes(magic.data(), magic.size());
  write_bytes(&version, sizeof version);
  write_record(record_of(checkpoint).SerializeAsString());
}

void CheckpointWriter::write(std::span<const float> tensor) {
  if (next_ >= checkpoint_.tensor_count() || tensor.size() != checkpoint_.elements_of(next_)) {
    internal_error("tensor {} of {} of a checkpoint has {} elements", next_, checkpoint_.tensor_count(), tensor.size());
  }
  const auto [kind, number] = name_of_tensor(checkpoint_, next_);
  checkpoint_format::Record record;
  checkpoint_format::Piece& piece = *record.mutable_piece();
  piece.set_tensor(kind);
  piece.set_parameter(number);
  for (std::size_t first = 0; first < tensor.size(); first += piece_elements) {
    const auto values = tensor.subspan(first, std::min(piece_elements, tensor.size() - first));
    piece.set_first(first);
    piece.set_values(values.data(), values.size_bytes());
    write_record(record.SerializeAsString());
  }
  ++next_;
}

void CheckpointWriter::commit() {
  if (next_ != checkpoint_.tensor_count()) {
    internal_error("a checkpoint ends after {} of {} tensors", next_, checkpoint_.tensor_count());
  }
  const Footer footer{0, checksum_, records_};
  write_bytes(&footer, sizeof footer);
  file_.commit();
}

void CheckpointWriter::write_record(const std::string& payload) {
  if (payload.size() > max_payload_bytes) internal_error("a record of a checkpoint has {} bytes", payload.size());
  const auto bytes = static_cast<std::uint32_t>(payload.size());
  const Frame frame{bytes, crc_of_record(bytes, payload)};
  checksum_ = crc(checksum_, &frame, sizeof frame);
  write_bytes(&frame, sizeof frame);
  write_bytes(payload.data(), payload.size());
  ++records_;
}

void CheckpointWriter::write_bytes(const void* data, std::size_t bytes) {
  file_.write({static_cast<const char*>(data), bytes});
}

CheckpointReader::CheckpointReader(const std::string& path, Part part) : file_(path, "checkpoint") {
  check_ends();
  read_header();
  if (part == Part::header) return;
  const std::uint64_t tensors_begin = offset_;
  check_tensors();
  offset_ = tensors_begin;
}

void CheckpointReader::check_ends() const {
  if (file_.size() == 0) file_.fail("is empty, not a checkpoint");
  std::array<char, magic.size()> begin{};
  if (file_.size() < preamble_bytes) file_.fail("has only {} bytes: cut short, or not a checkpoint", file_.size());
  file_.read(0, std::as_writable_bytes(std::span(begin)));
  if (std::string_view(begin.data(), begin.size()) != magic) {
    file_.fail("does not begin with {}: not a checkpoint, or its first bytes are damaged", magic);
  }
  const auto file_version = read_value<std::uint32_t>(file_, magic.size());
  if (file_version > version) {
    file_.fail("is a checkpoint of version {}; this hcclsim reads version {}. Read it with the hcclsim that wrote it",
               file_version, version);
  }
  if (file_version != version) file_.fail("has version {}, which never was: the file is damaged", file_version);
  if (file_.size() < preamble_bytes + sizeof(Footer)) file_.fail("has only {} bytes: it was cut short", file_.size());

  if (read_value<Footer>(file_, file_.size() - sizeof(Footer)).end_mark != 0) {
    file_.fail("has no end mark: it was cut short, or its last bytes are damaged");
  }
}

std::string CheckpointReader::next_record() {
  const std::uint64_t end = file_.size() - sizeof(Footer);
  if (offset_ == end) return {};
  if (end - offset_ < sizeof(Frame)) file_.fail("record {} at byte {} is cut short", records_, offset_);
  const auto frame = read_value<Frame>(file_, offset_);
  const std::uint64_t room = end - offset_ - sizeof(Frame);
  if (frame.payload_bytes == 0 || frame.payload_bytes > std::min<std::uint64_t>(room, max_payload_bytes)) {
    file_.fail("record {} at byte {} has a length of {} bytes, with {} left", records_, offset_, frame.payload_bytes,
               room);
  }
  std::string payload(frame.payload_bytes, '\0');
  file_.read(offset_ + sizeof frame, std::as_writable_bytes(std::span(payload)));
  if (crc_of_record(frame.payload_bytes, payload) != frame.checksum) {
    file_.fail("record {} at byte {} has a wrong checksum: the file is damaged", records_, offset_);
  }
  checksum_ = crc(checksum_, &frame, sizeof frame);
  offset_ += sizeof frame + payload.size();
  ++records_;
  return payload;
}

void CheckpointReader::read_header() {
  checksum_ = crc_of_preamble();
  offset_ = preamble_bytes;
  checkpoint_format::Record record;
  if (!record.ParseFromString(next_record()) || !record.has_header()) file_.fail("does not begin with a header");
  checkpoint_ = checkpoint_of(record.header());
  if (checkpoint_.iteration > most_iterations) {
    file_.fail("says that {} iterations are done; accepted: up to {}", checkpoint_.iteration, most_iterations);
  }
  if (checkpoint_.optimizer_steps > checkpoint_.iteration) {
    file_.fail("has {} updates in {} iterations", checkpoint_.optimizer_steps, checkpoint_.iteration);
  }
  const std::vector<Seconds>& ends = checkpoint_.iteration_ends;
  const auto npus = checkpoint_.options.find("npus");
  const bool one_each =
      ends.empty() || (npus != checkpoint_.options.end() && npus->second == fmt::to_string(ends.size()));
  const bool dates = std::all_of(ends.begin(), ends.end(), [](Seconds end) { return end >= 0 && std::isfinite(end); });
  if (!one_each || !dates) file_.fail("has simulated dates of {} NPUs that are none", ends.size());
  for (const CheckpointParameter& parameter : checkpoint_.parameters) require_room_for(parameter);
  if (!checkpoint_.hook.has_value()) return;
  for (const CheckpointHookTensor& tensor : checkpoint_.hook->tensors) {
    if (tensor.elements > 0 && tensor.elements <= file_.size() / sizeof(float)) continue;
    file_.fail("says that a tensor of its compression hook has {} elements: the file is damaged", tensor.elements);
  }
}

void CheckpointReader::require_room_for(const CheckpointParameter& parameter) const {
  std::uint64_t most_elements = file_.size() / sizeof(float);
  for (const std::uint32_t side : parameter.shape) {
    if (side == 0 || side > most_elements) {
      file_.fail("says that {} has the shape {}, which no tensor in a file of {} bytes can have: the file is damaged",
                 parameter.name, shape_text(parameter), file_.size());
    }
    most_elements /= side;
  }
}

Checkpoint read_checkpoint_header(const std::string& path) {
  return CheckpointReader(path, CheckpointReader::Part::header).checkpoint();
}

void CheckpointReader::check_tensors() {
  const std::size_t tensors = checkpoint_.tensor_count();
  for (std::size_t tensor = 0; tensor < tensors; ++tensor) read_pieces(tensor, [](std::uint64_t, std::string_view) {});
  if (offset_ != file_.size() - sizeof(Footer)) file_.fail("has records behind its last tensor, at byte {}", offset_);
  const auto footer = read_value<Footer>(file_, offset_);
  if (footer.records != records_) file_.fail("has {} records, its end says {}", records_, footer.records);
  if (footer.checksum != checksum_) {
    file_.fail("has the checksum {:08x}, its end says {:08x}: the file is damaged", checksum_, footer.checksum);
  }
}

void CheckpointReader::read(std::span<float> out) {
  if (next_ >= checkpoint_.tensor_count() || out.size() != checkpoint_.elements_of(next_)) {
    internal_error("tensor {} of checkpoint {} is read into {} elements", next_, file_.path(), out.size());
  }
  read_pieces(next_++, [&](std::uint64_t first, std::string_view values) {
    std::memcpy(out.data() + first, values.data(), values.size());
  });
}

void CheckpointReader::read_pieces(std::size_t tensor,
                                   const std::function<void(std::uint64_t, std::string_view)>& use) {
  const auto [kind, number] = name_of_tensor(checkpoint_, tensor);
  const std::uint64_t elements = checkpoint_.elements_of(tensor);
  for (std::uint64_t first = 0; first < elements;) {
    const std::uint64_t expected = std::min<std::uint64_t>(piece_elements, elements - first);
    checkpoint_format::Record record;
    const bool parsed = record.ParseFromString(next_record());
    const checkpoint_format::Piece& piece = record.piece();
    if (!parsed || !record.has_piece() || piece.tensor() != kind || piece.parameter() != number ||
        piece.first() != first || piece.values().size() != expected * sizeof(float)) {
      file_.fail("lacks elements {} to {} of {}", first, first + expected - 1, title_of_tensor(checkpoint_, tensor));
    }
    use(first, piece.values());
    first += expected;
  }
}

}  // namespace hcclsim::hccl
