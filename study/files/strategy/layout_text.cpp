#include "study/files/strategy/layout_text.hpp"

#include <utility>

#include "base/error.hpp"
#include "study/files/literal.hpp"

namespace hcclsim::study {
namespace {

using Kind = Literal::Kind;

bool same(const LayoutDefinition& one, const LayoutDefinition& other) {
  return one.device_matrix.dump() == other.device_matrix.dump() && one.alias_name.dump() == other.alias_name.dump();
}

class StrategyTextReader {
 public:
  StrategyTextReader(const std::string& where, std::string_view text, const std::optional<LayoutDefinition>& defined)
      : where_(where), text_(text), defined_(defined), reader_(text) {}

  [[nodiscard]] LayoutDefinition definition() {
    reader_.skip_blanks();
    if (last_part(reader_.dotted_name()) != "Layout") unreadable("it does not begin with Layout(…)");
    LayoutDefinition layout = definition_behind_its_name();
    require_end();
    return layout;
  }

  [[nodiscard]] StrategyText strategy() {
    LiteralReader whole(text_);
    const std::optional<Literal> literal = whole.read();
    whole.skip_blanks();
    if (literal.has_value() && whole.place() == text_.size()) return {numbers(*literal), std::nullopt};
    StrategyText result{Json::array(), std::nullopt};
    reader_.skip_blanks();
    const bool tuple = reader_.peek() == '(';
    if (tuple) reader_.advance();
    for (reader_.skip_blanks(); reader_.peek() != ')' && reader_.peek() != '\0'; reader_.skip_blanks()) {
      add_call(result);
      reader_.skip_blanks();
      if (!tuple || reader_.peek() != ',') break;
      reader_.advance();
    }
    if (tuple) {
      if (reader_.peek() != ')') unreadable("a parenthesis does not close");
      reader_.advance();
    } else {
      type_error("in_strategy is a tuple, of a Layout for each tensor");
    }
    require_end();
    return result;
  }

 private:
  [[noreturn]] void type_error(std::string_view what) const {
    bad_input("type-error", "{}: '{}': {}", where_, text_, what);
  }
  [[noreturn]] void value_error(std::string_view what) const {
    bad_input("value-error", "{}: '{}': {}", where_, text_, what);
  }
  [[noreturn]] void unreadable(std::string_view what) const {
    bad_input("strategy", "{}: '{}': {}; accepted: tuples such as ((2, 1), (1, 4)), or calls of a Layout", where_,
              text_, what);
  }

  static std::string_view last_part(std::string_view name) { return name.substr(name.rfind('.') + 1); }

  void require_end() {
    reader_.skip_blanks();
    if (reader_.place() < text_.size()) unreadable("there is more behind its end");
  }

  /// Tuples of ints.
  [[nodiscard]] Json numbers(const Literal& literal) const {
    if (literal.kind != Kind::tuple) type_error("in_strategy is a tuple");
    Json tensors = Json::array();
    for (const Literal& tensor : literal.items) {
      if (tensor.kind != Kind::tuple) type_error("an element of in_strategy is neither a tuple nor a Layout");
      for (const Literal& cut : tensor.items) {
        if (cut.kind != Kind::integer) type_error("a value of in_strategy is no int");
      }
      tensors.push_back(json_of(tensor));
    }
    return tensors;
  }

  /// Its arguments, both tuples.
  [[nodiscard]] LayoutDefinition definition_behind_its_name() {
    const Literal arguments = read_arguments();
    const bool two = arguments.kind == Kind::tuple && arguments.items.size() == 2;
    if (!two) type_error("Layout takes device_matrix and alias_name");
    const auto check = [&](const Literal& argument, Kind kind, std::string_view what) {
      if (argument.kind != Kind::tuple) type_error(what);
      for (const Literal& item : argument.items) {
        if (item.kind != kind) type_error(what);
      }
    };
    check(arguments.items[0], Kind::integer, "Layout: device_matrix is a tuple of ints");
    check(arguments.items[1], Kind::text, "Layout: alias_name is a tuple of texts");
    return {json_of(arguments.items[0]), json_of(arguments.items[1])};
  }

  [[nodiscard]] Literal read_arguments() {
    reader_.skip_blanks();
    if (reader_.peek() != '(') unreadable("a call has its arguments in parentheses");
    std::optional<Literal> arguments = reader_.read();
    if (!arguments.has_value()) unreadable(reader_.problem());
    return std::move(*arguments);
  }

  /// Layout((2, 4), ("dp", "mp"))("dp", "None"), or layout("dp", "None").
  void add_call(StrategyText& result) {
    const std::string name(last_part(reader_.dotted_name()));
    if (name.empty()) {
      const bool numbers_alone = text_.find("ayout") == std::string_view::npos;
      if (numbers_alone || !reader_.read().has_value()) unreadable("it is no literal, and there is no Layout");
      value_error("in_strategy has tuples beside Layouts; all are of one kind");
    }
    LayoutDefinition layout;
    if (name == "Layout") {
      layout = definition_behind_its_name();
    } else if (defined_.has_value()) {
      layout = *defined_;
    } else {
      value_error("no layout has been defined: layout = \"Layout((2, 4), ('dp', 'mp'))\"");
    }
    if (result.layout.has_value() && !same(*result.layout, layout)) {
      value_error("a strategy has Layouts of one device matrix with the same names");
    }
    result.layout = std::move(layout);
    const Literal axes = read_arguments();
    Json tensor = Json::array();
    if (axes.kind != Kind::tuple) {
      tensor.push_back(axis(axes));
    } else {
      for (const Literal& one : axes.items) tensor.push_back(axis(one));
    }
    result.tensors.push_back(std::move(tensor));
  }

  [[nodiscard]] Json axis(const Literal& names) const {
    if (names.kind == Kind::text) return names.text;
    if (names.kind != Kind::tuple) type_error("an axis is cut by a name, \"None\" or a tuple of names");
    for (const Literal& name : names.items) {
      if (name.kind != Kind::text) type_error("an axis is cut by a name, \"None\" or a tuple of names");
    }
    return json_of(names);
  }

  const std::string& where_;
  std::string_view text_;
  const std::optional<LayoutDefinition>& defined_;
  LiteralReader reader_;
};

}  // namespace

LayoutDefinition parse_layout(const std::string& where, std::string_view text) {
  return StrategyTextReader(where, text, std::nullopt).definition();
}

StrategyText parse_strategy_text(const std::string& where, std::string_view text,
                                 const std::optional<LayoutDefinition>& defined) {
  return StrategyTextReader(where, text, defined).strategy();
}

}  // namespace hcclsim::study
