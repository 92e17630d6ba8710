#pragma once

#include <string>
#include <string_view>

/// A folder of files that appears whole or not at all: it is filled under a temporary name beside its own, which it
/// gets when all is written. What a killed process left there is removed when the same folder is written again.
namespace hcclsim {

class OutputFolder {
 public:
  /// The path must not exist, or be an empty folder; folders on the way to it must. Nothing is made yet, so that a
  /// process that is killed before it writes leaves nothing. Throws Error(bad_input) of kind "output".
  explicit OutputFolder(const std::string& path);
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder(OutputFolder&&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;
  OutputFolder& operator=(OutputFolder&&) = delete;
  /// Removes what was written unless commit() was called.
  ~OutputFolder();

  /// Makes a folder in it, and those on the way.
  void make_folder(const std::string& relative);
  /// Where a file of it is written until commit(): for OutputFile. Its folder must have been made.
  [[nodiscard]] std::string place_of(const std::string& relative) const { return temporary_ + "/" + relative; }
  /// Makes the folder appear at its path. Nothing can be written afterwards.
  void commit();

 private:
  [[noreturn]] void fail(int error_number) const;
  void make_temporary();
  void remove_leftovers() const;

  std::string path_;       ///< as given, for messages
  std::string target_;     ///< without a slash at its end
  std::string temporary_;  ///< empty before the first folder is made and after commit()
  int lock_ = -1;          ///< tells others that the folder is being written
};

}  // namespace hcclsim
