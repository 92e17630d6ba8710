#include "study/files/yaml.hpp"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <map>
#include <optional>
#include <sstream>
#include <utility>

#include "base/error.hpp"
#include "base/files/nesting.hpp"
#include "base/text.hpp"

namespace hcclsim::study {
namespace {

/// Builds the tree from the events of a parser: the list or map that is open gets what comes next.
class YamlTree : public YAML::EventHandler {
 public:
  YamlTree(const std::string& file, std::string_view kind) : file_(file), kind_(kind) {}

  [[nodiscard]] bool empty() const { return documents_ == 0; }
  /// After all has been read: what is no YAML is said before what is no tree of texts.
  [[nodiscard]] YamlNode take() {
    if (wrong_key_.has_value()) fail(*wrong_key_, "a key is no text");
    return std::move(root_);
  }

  template <typename... Args>
  [[noreturn]] void fail(std::uint32_t line, fmt::format_string<Args...> format, Args&&... args) const {
    bad_input(kind_, "{}:{}: {}", file_, line, fmt::format(format, std::forward<Args>(args)...));
  }

  [[nodiscard]] static std::uint32_t line_of(const YAML::Mark& mark) {
    return static_cast<std::uint32_t>(std::max(mark.line, 0)) + 1;
  }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1) fail(line_of(mark), "another document begins; give a file with one");
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    add({.line = line_of(mark), .members = {}}, anchor);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    add({.kind = YamlNode::Kind::scalar, .text = value, .plain = tag == "?", .line = line_of(mark), .members = {}},
        anchor);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchored_.find(anchor);
    if (found == anchored_.end()) fail(line_of(mark), "an alias stands for a node that it is part of");
    const YamlNode copy = found->second;
    count(copy, line_of(mark), open_.size());
    add(copy, 0);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    begin({.kind = YamlNode::Kind::list, .line = line_of(mark), .members = {}}, anchor);
  }
  void OnSequenceEnd() override { end(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    begin({.kind = YamlNode::Kind::map, .line = line_of(mark), .members = {}}, anchor);
  }
  void OnMapEnd() override { end(); }

 private:
  struct Open {
    YamlNode node;
    YAML::anchor_t anchor = 0;
    std::optional<std::pair<std::string, std::uint32_t>> key{};  ///< of a map, whose value comes next
  };

  void begin(YamlNode node, YAML::anchor_t anchor) {
    require_depth(open_.size() + 1, node.line);
    open_.push_back({std::move(node), anchor});
  }

  void end() {
    Open done = std::move(open_.back());
    open_.pop_back();
    add(std::move(done.node), done.anchor);
  }

  /// `node` is complete.
  void add(YamlNode node, YAML::anchor_t anchor) {
    if (++nodes_ > most_yaml_nodes) fail(node.line, "more than {} values", most_yaml_nodes);
    if (anchor != 0) anchored_[anchor] = node;
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    Open& parent = open_.back();
    if (parent.node.kind == YamlNode::Kind::list) {
      parent.node.items.push_back(std::move(node));
    } else if (parent.key.has_value()) {
      parent.node.members.push_back({std::move(parent.key->first), parent.key->second, std::move(node)});
      parent.key.reset();
    } else {
      take_key(parent, node);
    }
  }

  void take_key(Open& parent, const YamlNode& node) {
    if (node.kind != YamlNode::Kind::scalar && !wrong_key_.has_value()) wrong_key_ = node.line;
    if (node.plain && node.text == "<<") fail(node.line, "merge keys (<<) are not read; write the values out");
    for (const YamlMember& member : parent.node.members) {
      if (member.key != node.text) continue;
      fail(node.line, "the key '{}' stands in line {} already", printable(node.text), member.line);
    }
    parent.key.emplace(node.text, node.line);
  }

  /// Counts a node that an alias repeats, and what lies below it; `depth`: of the lists and maps around it.
  void count(const YamlNode& node, std::uint32_t line, std::size_t depth) {
    if (++nodes_ > most_yaml_nodes) fail(line, "more than {} values", most_yaml_nodes);
    if (node.kind == YamlNode::Kind::list || node.kind == YamlNode::Kind::map) require_depth(++depth, line);
    for (const YamlNode& item : node.items) count(item, line, depth);
    for (const YamlMember& member : node.members) count(member.value, line, depth);
  }

  void require_depth(std::size_t depth, std::uint32_t line) const {
    if (depth > deepest_nesting) fail(line, "lists and maps are more than {} deep", deepest_nesting);
  }

  const std::string& file_;
  std::string_view kind_;
  std::size_t documents_ = 0;
  std::size_t nodes_ = 0;
  std::optional<std::uint32_t> wrong_key_{};  // line of a key that is a list or a map
  YamlNode root_{};
  std::vector<Open> open_{};
  std::map<YAML::anchor_t, YamlNode> anchored_{};
};

}  // namespace

const YamlMember* YamlNode::find(std::string_view key) const {
  const auto found =
      std::find_if(members.begin(), members.end(), [&](const YamlMember& member) { return member.key == key; });
  return found == members.end() ? nullptr : &*found;
}

YamlNode parse_yaml(const std::string& text, const std::string& file, std::string_view kind) {
  YamlTree tree(file, kind);
  try {
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(tree)) {
    }
  } catch (const YAML::Exception& error) {
    tree.fail(YamlTree::line_of(error.mark), "no YAML: {} (column {})", error.msg, std::max(error.mark.column, 0) + 1);
  }
  if (tree.empty()) bad_input(kind, "{}: no YAML document in it", file);
  return tree.take();
}

}  // namespace hcclsim::study
