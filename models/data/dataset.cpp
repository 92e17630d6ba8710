#include "models/data/dataset.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <system_error>

#include "base/error.hpp"
#include "base/text.hpp"
#include "models/data/sources.hpp"

namespace hcclsim::models {

namespace {

constexpr std::string_view accepted =
    "synthetic[:SAMPLES], synthetic-classes[:SAMPLES], cifar10:FOLDER or cifar10:FILE, mnist:FOLDER, images:FOLDER";

/// The number behind "synthetic:"; unbounded if there is none.
std::uint64_t parse_samples(std::string_view source, std::string_view text) {
  if (source.find(':') == std::string_view::npos) return unbounded;
  const std::optional<std::uint64_t> samples = parse_number<std::uint64_t>(text);
  if (!samples.has_value() || *samples == 0 || *samples == unbounded) {
    bad_input("data", "data source '{}': '{}' is not a number of samples, 1 or more", source, text);
  }
  return *samples;
}

/// Rows of the smallest table in which the tokens of a batch are looked up; 0 if there is none.
std::uint32_t token_values(const Graph& graph) {
  std::uint32_t rows = 0;
  for (const Operator& op : graph.operators) {
    if (op.kind != OperatorKind::token_embedding) continue;
    const std::uint32_t of_table = graph.parameters[op.parameters.front()].shape.front();
    rows = rows == 0 ? of_table : std::min(rows, of_table);
  }
  return rows;
}

/// Rows of the parts of the tables that are not split evenly.
std::vector<std::uint32_t> token_parts(const Graph& graph) {
  const Operator* split = nullptr;
  for (const Operator& op : graph.operators) {
    if (op.row_parts.empty()) continue;
    if (split != nullptr && split->row_parts != op.row_parts) {
      bad_input("data",
                "{} and {} look up the same tokens, but split their tables differently: made data cannot suit "
                "both",
                split->name, op.name);
    }
    split = &op;
  }
  return split == nullptr ? std::vector<std::uint32_t>{} : split->row_parts;
}

}  // namespace

InputFile open_data_file(const std::string& path) {
  InputFile file(path, "data");
  if (file.size() == 0) file.fail("the file is empty");
  std::array<std::byte, 2> begin{};
  const bool gzip = file.read_some(0, begin).size() == 2 && begin[0] == std::byte{0x1f} && begin[1] == std::byte{0x8b};
  if (gzip) file.fail("the file is compressed with gzip; unpack it first (gunzip, tar xzf)");
  return file;
}

void require_folder(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return;
  const bool exists = std::filesystem::exists(path, ignored);
  bad_input("data", "{} {}", exists ? "not a folder:" : "there is no folder", path);
}

SampleForm sample_form(const Graph& graph) {
  SampleForm form;
  form.kind = graph.input_kind;
  form.shape = graph.operators.front().shape();
  form.shape.resize(0, 1);
  const Operator& loss = graph.operators.back();
  std::vector<LabelForm> labels;
  for (const Value logits : loss.inputs) {
    const Shape& shape = graph.tensor(logits).shape;
    const std::uint32_t classes = loss.kind == OperatorKind::binary_loss ? 2 : shape.channels();
    labels.push_back({shape.batch() / graph.batch(), classes});
  }
  form.labels = labels.front().count;
  form.classes = labels.front().classes;
  form.others.assign(labels.begin() + 1, labels.end());
  form.token_values = token_values(graph);
  form.token_parts = token_parts(graph);
  return form;
}

std::span<float> Dataset::inputs_at(Batch& batch, std::uint32_t slot) const {
  return std::span(batch.inputs).subspan(slot * form_.elements(), form_.elements());
}

std::span<std::int32_t> Dataset::tokens_at(Batch& batch, std::uint32_t slot) const {
  return std::span(batch.tokens).subspan(slot * form_.elements(), form_.elements());
}

std::span<std::int32_t> Dataset::labels_at(Batch& batch, std::uint32_t slot) const {
  return std::span(batch.labels).subspan(std::size_t{slot} * form_.labels, form_.labels);
}

std::span<std::int32_t> Dataset::other_labels_at(Batch& batch, std::uint32_t slot, std::size_t number) const {
  std::size_t before = std::size_t{batch.samples} * form_.labels;
  for (std::size_t i = 0; i < number; ++i) before += std::size_t{batch.samples} * form_.others[i].count;
  const std::size_t count = form_.others[number].count;
  return std::span(batch.labels).subspan(before + slot * count, count);
}

void Dataset::require_class(std::string_view where, std::uint64_t label) const {
  if (label < form_.classes) return;
  bad_input("data", "{} has label {}, but the network has {} classes (labels 0 to {})", where, label, form_.classes,
            form_.classes - 1);
}

std::unique_ptr<Dataset> open_dataset(std::string_view source, const Graph& graph, std::uint64_t seed) {
  const SampleForm form = sample_form(graph);
  const std::size_t colon = source.find(':');
  const std::string_view name = source.substr(0, colon);
  const std::string_view rest = colon == std::string_view::npos ? "" : source.substr(colon + 1);
  if (name == "synthetic" || name == "synthetic-classes") {
    const auto rule = name == "synthetic" ? SyntheticRule::random_labels : SyntheticRule::learnable;
    return make_synthetic(form, rule, parse_samples(source, rest), seed);
  }
  const bool files = name == "cifar10" || name == "mnist" || name == "images";
  if (!files) bad_input("data", "data source '{}' is unknown; accepted: {}", source, accepted);
  if (rest.empty()) bad_input("data", "data source '{}' lacks the path of the data; accepted: {}", source, accepted);
  if (form.kind == InputKind::tokens) {
    bad_input("data", "data source '{}' has images, but {} takes tokens; accepted for it: synthetic, synthetic-classes",
              source, graph.title);
  }
  const std::string path(rest);
  if (name == "cifar10") return open_cifar10(form, path);
  if (name == "mnist") return open_mnist(form, path);
  return open_image_folder(form, path);
}

void fill(Batch& batch, const Dataset& dataset, std::span<const std::uint64_t> samples) {
  const SampleForm& form = dataset.form();
  batch.samples = static_cast<std::uint32_t>(samples.size());
  const std::size_t elements = samples.size() * form.elements();
  batch.inputs.resize(form.kind == InputKind::tokens ? 0 : elements);
  batch.tokens.resize(form.kind == InputKind::tokens ? elements : 0);
  std::size_t labels = form.labels;
  for (const LabelForm& other : form.others) labels += other.count;
  batch.labels.resize(samples.size() * labels);
  for (std::uint32_t slot = 0; slot < batch.samples; ++slot) dataset.read(samples[slot], batch, slot);
}

}  // namespace hcclsim::models
