#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>

#include "base/error.hpp"
#include "models/data/picture.hpp"
#include "models/data/sources.hpp"

/// MNIST and what is stored like it: a folder with train-images-idx3-ubyte and train-labels-idx1-ubyte (or, if these
/// are not there, the same of t10k-). Numbers in the headers are of 4 bytes, the highest first: magic 2051, images,
/// rows, columns, then a byte per pixel; magic 2049, labels, then a byte per label. Labels are read at once, images
/// when they are asked for.
namespace hcclsim::models {

namespace fs = std::filesystem;

namespace {

constexpr std::uint32_t images_magic = 2051;
constexpr std::uint32_t labels_magic = 2049;
constexpr std::uint64_t images_header_bytes = 16;
constexpr std::uint64_t labels_header_bytes = 8;
constexpr std::uint32_t max_side = 4096;

constexpr std::string_view images_suffix = "-images-idx3-ubyte";
constexpr std::string_view labels_suffix = "-labels-idx1-ubyte";

std::string path_of(const std::string& folder, std::string_view set, std::string_view suffix) {
  return (fs::path(folder) / fmt::format("{}{}", set, suffix)).string();
}

/// Which of the two sets a folder has.
std::string_view set_of(const std::string& folder) {
  require_folder(folder);
  std::error_code ignored;
  for (const std::string_view set : {"train", "t10k"}) {
    const std::string path = path_of(folder, set, images_suffix);
    if (fs::exists(path, ignored)) return set;
    if (fs::exists(path + ".gz", ignored)) bad_input("data", "{}.gz is compressed; unpack it first (gunzip)", path);
  }
  bad_input("data", "{} has neither train{} nor t10k{}", folder, images_suffix, images_suffix);
}

/// The number `index` of a header.
std::uint32_t header_number(const InputFile& file, std::uint64_t index) {
  std::array<std::uint8_t, 4> bytes{};
  file.read(index * bytes.size(), std::as_writable_bytes(std::span(bytes)));
  std::uint32_t number = 0;
  for (const std::uint8_t byte : bytes) number = number << 8U | byte;
  return number;
}

void require_magic(const InputFile& file, std::uint32_t magic) {
  const std::uint32_t found = header_number(file, 0);
  if (found == magic) return;
  file.fail("begins with {}; {} of MNIST begin with {}", found, magic == images_magic ? "images" : "labels", magic);
}

void require_size(const InputFile& file, std::uint64_t expected) {
  if (file.size() == expected) return;
  file.fail("has {} bytes, but by its header {}: it is {}", file.size(), expected,
            file.size() < expected ? "cut short" : "damaged");
}

class Mnist final : public Dataset {
 public:
  /// `set`: "train" or "t10k".
  Mnist(const SampleForm& form, const std::string& folder, std::string_view set)
      : Dataset(form), images_(open_data_file(path_of(folder, set, images_suffix))) {
    read_images_header();
    read_labels(open_data_file(path_of(folder, set, labels_suffix)));
  }

  [[nodiscard]] std::uint64_t size() const override { return labels_.size(); }
  [[nodiscard]] bool shuffles() const override { return true; }

  void read(std::uint64_t sample, Batch& batch, std::uint32_t slot) const override {
    std::vector<std::uint8_t> bytes(picture_size_.elements());
    images_.read(images_header_bytes + sample * bytes.size(), std::as_writable_bytes(std::span(bytes)));
    fit({picture_size_, bytes}, form(), inputs_at(batch, slot));
    labels_at(batch, slot).front() = labels_[sample];
  }

  [[nodiscard]] std::string describe() const override {
    return fmt::format("MNIST, {} images of {} in {}", size(), models::describe(picture_size_, form()), images_.path());
  }

 private:
  void read_images_header() {
    require_magic(images_, images_magic);
    count_ = header_number(images_, 1);
    picture_size_ = {1, header_number(images_, 2), header_number(images_, 3)};
    const auto [smaller, larger] = std::minmax(picture_size_.height, picture_size_.width);
    if (count_ == 0 || smaller == 0 || larger > max_side) {
      images_.fail("has {} images of {}x{} pixels; accepted: at least one image of 1 to {} pixels per side", count_,
                   picture_size_.height, picture_size_.width, max_side);
    }
    require_size(images_, images_header_bytes + count_ * picture_size_.pixels());
    require_fit(images_.path(), picture_size_, form());
  }

  void read_labels(const InputFile& file) {
    require_magic(file, labels_magic);
    const std::uint32_t labels = header_number(file, 1);
    if (labels != count_) file.fail("has {} labels for the {} images of {}", labels, count_, images_.path());
    require_size(file, labels_header_bytes + labels);
    labels_.resize(labels);
    file.read(labels_header_bytes, std::as_writable_bytes(std::span(labels_)));
    for (std::size_t record = 0; record < labels_.size(); ++record) {
      require_class(fmt::format("{}: record {}", file.path(), record), labels_[record]);
    }
  }

  InputFile images_;
  std::uint32_t count_ = 0;  ///< of images
  PictureSize picture_size_;
  std::vector<std::uint8_t> labels_;
};

}  // namespace

std::unique_ptr<Dataset> open_mnist(const SampleForm& form, const std::string& folder) {
  return std::make_unique<Mnist>(form, folder, set_of(folder));
}

}  // namespace hcclsim::models
