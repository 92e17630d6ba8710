#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <sstream>
#include <system_error>
#include <unordered_set>

#include "base/error.hpp"
#include "base/text.hpp"
#include "models/data/image_file.hpp"
#include "models/data/picture.hpp"
#include "models/data/sources.hpp"

/// A folder with images (.png, .jpg, .jpeg, .ppm, .pgm, .pnm). Their labels come from a file labels.txt in the
/// folder, one line "NAME LABEL" per image, or, if there is none, from one sub-folder per class, numbered from 0 in the
/// order of their names. Other files, and names that begin with a dot, are ignored. The header of every image is
/// checked at once; its pixels are read when they are asked for.
namespace hcclsim::models {

namespace fs = std::filesystem;

namespace {

constexpr std::array<std::string_view, 6> extensions{".png", ".jpg", ".jpeg", ".ppm", ".pgm", ".pnm"};

bool is_image(const fs::directory_entry& entry) {
  std::error_code ignored;
  std::string extension = entry.path().extension().string();
  std::ranges::transform(extension, extension.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c; });
  const bool known = std::ranges::find(extensions, extension) != extensions.end();
  return known && entry.is_regular_file(ignored);
}

/// Names in a folder for which `wanted` holds, sorted.
std::vector<std::string> names_in(const std::string& folder, bool (*wanted)(const fs::directory_entry&)) {
  std::error_code failure;
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, failure)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with('.') && wanted(entry)) names.push_back(name);
  }
  if (failure) bad_input("data", "cannot read {}: {}", folder, failure.message());
  std::ranges::sort(names);
  return names;
}

class ImageFolder final : public Dataset {
 public:
  ImageFolder(const SampleForm& form, const std::string& folder) : Dataset(form), folder_(folder) {
    require_folder(folder);
    std::error_code ignored;
    const std::string labels = path_of("labels.txt");
    if (fs::exists(labels, ignored)) {
      read_labels(labels);
    } else {
      list_classes();
    }
    for (const Entry& entry : entries_) {
      const InputFile file = open_data_file(path_of(entry.name));
      const ImageHeader header = read_image_header(file);
      require_fit(file.path(), header.size, form);
      if (header.decoding <= largest_.bytes) continue;
      largest_ = {header.decoding,
                  fmt::format("{} ({}x{} pixels)", file.path(), header.size.width, header.size.height)};
    }
  }

  [[nodiscard]] std::uint64_t size() const override { return entries_.size(); }
  [[nodiscard]] bool shuffles() const override { return true; }

  void read(std::uint64_t sample, Batch& batch, std::uint32_t slot) const override {
    const Entry& entry = entries_[sample];
    const InputFile file = open_data_file(path_of(entry.name));
    const ImageHeader header = read_image_header(file);
    require_fit(file.path(), header.size, form());
    if (header.decoding > largest_.bytes) {
      file.fail("has become {}x{} pixels, larger than any image was at the start", header.size.width,
                header.size.height);
    }
    const DecodedImage image(file);
    fit(image.picture(), form(), inputs_at(batch, slot));
    labels_at(batch, slot).front() = entry.label;
  }

  [[nodiscard]] ReadCost read_cost() const override { return largest_; }

  [[nodiscard]] std::string describe() const override {
    return fmt::format("{} {} of {}", size(), size() == 1 ? "image" : "images", folder_);
  }

 private:
  void read_labels(const std::string& path) {
    std::istringstream file(read_text_file(path, "data"));
    std::unordered_set<std::string> names;
    std::string text;
    for (std::size_t number = 1; std::getline(file, text); ++number) {
      if (text.find('\0') != std::string::npos) bad_input("data", "{}:{}: the line has a NUL byte", path, number);
      const std::string_view line = trimmed(text);
      if (line.empty()) continue;
      const std::size_t blank = line.find_last_of(" \t");
      const std::string name(trimmed(line.substr(0, blank == std::string_view::npos ? 0 : blank)));
      const std::string_view digits = line.substr(blank == std::string_view::npos ? 0 : blank + 1);
      const std::optional<std::uint32_t> label = parse_number<std::uint32_t>(digits);
      if (name.empty() || !label.has_value()) {
        bad_input("data", "{}:{}: '{}' is not the name of an image and its label, a number from 0", path, number, line);
      }
      require_class(fmt::format("{}:{}: {}", path, number, name), *label);
      std::error_code ignored;
      if (!fs::is_regular_file(path_of(name), ignored)) {
        bad_input("data", "{}:{}: there is no file {}", path, number, path_of(name));
      }
      if (!names.insert(name).second) bad_input("data", "{}:{}: {} has a label already", path, number, name);
      entries_.push_back({name, static_cast<std::int32_t>(*label)});
    }
    if (entries_.empty()) bad_input("data", "{} names no images; accepted: lines 'NAME LABEL'", path);
  }

  void list_classes() {
    const auto is_folder = [](const fs::directory_entry& entry) {
      std::error_code ignored;
      return entry.is_directory(ignored);
    };
    const std::vector<std::string> classes = names_in(folder_, is_folder);
    if (classes.empty()) {
      const bool images = !names_in(folder_, is_image).empty();
      bad_input("data", "{} has {}; needed: a file labels.txt with lines 'NAME LABEL', or a sub-folder per class",
                folder_, images ? "images without labels" : "no images");
    }
    if (classes.size() > form().classes) {
      bad_input("data", "{} has {} sub-folders, one per class, but the network has {} classes", folder_, classes.size(),
                form().classes);
    }
    for (std::size_t label = 0; label < classes.size(); ++label) {
      const std::vector<std::string> names = names_in(path_of(classes[label]), is_image);
      if (names.empty())
        bad_input("data", "{} has no images ({})", path_of(classes[label]), fmt::join(extensions, ", "));
      for (const std::string& name : names) {
        entries_.push_back({classes[label] + "/" + name, static_cast<std::int32_t>(label)});
      }
    }
  }

  [[nodiscard]] std::string path_of(const std::string& name) const { return (fs::path(folder_) / name).string(); }

  struct Entry {
    std::string name;  ///< path in the folder
    std::int32_t label = 0;
  };

  std::string folder_;
  std::vector<Entry> entries_;
  ReadCost largest_;
};

}  // namespace

std::unique_ptr<Dataset> open_image_folder(const SampleForm& form, const std::string& folder) {
  return std::make_unique<ImageFolder>(form, folder);
}

}  // namespace hcclsim::models
