#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>

#include "base/error.hpp"
#include "models/data/picture.hpp"
#include "models/data/sources.hpp"

/// CIFAR-10 in its binary version: files of records without a header, each of one byte with the label (0 to 9) and
/// 3072 with the image (3 channels of 32 x 32, red first). A folder stands for its data_batch_*.bin in the order of
/// their names, or for test_batch.bin if it has no others. Labels are read at once, images when they are asked for.
namespace hcclsim::models {

namespace fs = std::filesystem;

namespace {

constexpr PictureSize picture_size{3, 32, 32};
constexpr std::uint64_t image_bytes = 3072;
constexpr std::uint64_t record_bytes = 1 + image_bytes;
constexpr std::uint32_t cifar_classes = 10;

/// The files of a folder, or the file itself.
std::vector<std::string> files_of(const std::string& path) {
  std::error_code failure;
  if (!fs::is_directory(path, failure)) return {path};
  std::vector<std::string> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(path, failure)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("data_batch_") && name.ends_with(".bin")) files.push_back(entry.path().string());
  }
  if (failure) bad_input("data", "cannot read {}: {}", path, failure.message());
  std::ranges::sort(files);
  if (const fs::path test = fs::path(path) / "test_batch.bin"; files.empty() && fs::exists(test, failure)) {
    files.push_back(test.string());
  }
  if (files.empty()) {
    bad_input("data", "{} has neither data_batch_*.bin nor test_batch.bin, the files of CIFAR-10's binary version",
              path);
  }
  return files;
}

class Cifar10 final : public Dataset {
 public:
  Cifar10(const SampleForm& form, const std::string& path) : Dataset(form), path_(path) {
    require_fit(path, picture_size, form);
    for (const std::string& file : files_of(path)) open(file);
  }

  [[nodiscard]] std::uint64_t size() const override { return labels_.size(); }
  [[nodiscard]] bool shuffles() const override { return true; }

  void read(std::uint64_t sample, Batch& batch, std::uint32_t slot) const override {
    const auto file = static_cast<std::size_t>(std::ranges::upper_bound(first_, sample) - first_.begin()) - 1;
    std::array<std::uint8_t, image_bytes> bytes{};
    files_[file].read((sample - first_[file]) * record_bytes + 1, std::as_writable_bytes(std::span(bytes)));
    fit({picture_size, bytes}, form(), inputs_at(batch, slot));
    labels_at(batch, slot).front() = labels_[sample];
  }

  [[nodiscard]] std::string describe() const override {
    return fmt::format("CIFAR-10, {} images of {} in {} of {}", size(), models::describe(picture_size, form()),
                       files_.size() == 1 ? "1 file" : fmt::format("{} files", files_.size()), path_);
  }

 private:
  void open(const std::string& path) {
    const InputFile& file = files_.emplace_back(open_data_file(path));
    if (file.size() % record_bytes != 0) {
      file.fail(
          "has {} bytes, no multiple of the {} of a record of CIFAR-10's binary version: record {} is cut short, or "
          "this is another format",
          file.size(), record_bytes, file.size() / record_bytes);
    }
    first_.push_back(labels_.size());
    for (std::uint64_t record = 0; record < file.size() / record_bytes; ++record) {
      std::uint8_t label = 0;
      file.read(record * record_bytes, std::as_writable_bytes(std::span(&label, 1)));
      if (label >= cifar_classes) {
        file.fail("record {} (byte {}) has label {}; CIFAR-10 has labels 0 to {}", record, record * record_bytes, label,
                  cifar_classes - 1);
      }
      require_class(fmt::format("{}: record {}", path, record), label);
      labels_.push_back(label);
    }
  }

  std::string path_;
  std::vector<InputFile> files_;
  std::vector<std::uint64_t> first_;  ///< sample in the first record of each file
  std::vector<std::uint8_t> labels_;
};

}  // namespace

std::unique_ptr<Dataset> open_cifar10(const SampleForm& form, const std::string& path) {
  return std::make_unique<Cifar10>(form, path);
}

}  // namespace hcclsim::models
