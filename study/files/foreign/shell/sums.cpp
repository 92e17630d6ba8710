#include <algorithm>
#include <array>
#include <cctype>

#include "base/text.hpp"
#include "study/files/foreign/shell/environment.hpp"
#include "study/files/foreign/shell/syntax.hpp"

// Sums and conditions.
namespace hcclsim::study {
namespace {

using Sum = std::optional<std::int64_t>;

/// A sum of numbers and names of variables.
class ShellSum {
 public:
  ShellSum(std::string_view text, const ShellEnvironment& environment) : text_(text), environment_(environment) {}

  Sum run() {
    const Sum value = comparison(0);
    skip();
    return at_ == text_.size() ? value : std::nullopt;
  }

 private:
  void skip() {
    while (at_ < text_.size() && (is_shell_blank(text_[at_]) || text_[at_] == '\n')) ++at_;
  }
  bool eat(std::string_view sign) {
    skip();
    if (!text_.substr(at_).starts_with(sign)) return false;
    at_ += sign.size();
    return true;
  }

  Sum comparison(int depth) {
    const Sum left = terms(depth);
    static constexpr std::array<std::string_view, 6> signs{"==", "!=", "<=", ">=", "<", ">"};
    for (const std::string_view sign : signs) {
      if (!left.has_value() || !eat(sign)) continue;
      const Sum right = terms(depth);
      if (!right.has_value()) return std::nullopt;
      const bool less = *left < *right;
      const bool equal = *left == *right;
      if (sign == "==") return equal;
      if (sign == "!=") return !equal;
      if (sign == "<=") return less || equal;
      if (sign == ">=") return !less;
      return sign == "<" ? less : !less && !equal;
    }
    return left;
  }

  Sum terms(int depth) {
    Sum left = factors(depth);
    while (left.has_value()) {
      const bool plus = eat("+");
      if (!plus && !eat("-")) break;
      const Sum right = factors(depth);
      if (!right.has_value()) return std::nullopt;
      if (plus ? __builtin_add_overflow(*left, *right, &*left) : __builtin_sub_overflow(*left, *right, &*left))
        return std::nullopt;
    }
    return left;
  }

  Sum factors(int depth) {
    Sum left = value(depth);
    while (left.has_value()) {
      const char sign = eat("*") ? '*' : eat("/") ? '/' : eat("%") ? '%' : '\0';
      if (sign == '\0') break;
      const Sum right = value(depth);
      if (!right.has_value() || (sign != '*' && (*right == 0 || *right == -1))) return std::nullopt;
      if (sign == '*') {
        if (__builtin_mul_overflow(*left, *right, &*left)) return std::nullopt;
      } else {
        left = sign == '/' ? *left / *right : *left % *right;
      }
    }
    return left;
  }

  Sum value(int depth) {
    if (depth > 50) return std::nullopt;
    if (eat("(")) {
      const Sum inner = comparison(depth + 1);
      return eat(")") ? inner : std::nullopt;
    }
    if (eat("-")) {
      const Sum inner = value(depth + 1);
      return inner.has_value() && *inner != INT64_MIN ? Sum(-*inner) : std::nullopt;
    }
    skip();
    std::string word;
    while (at_ < text_.size() && is_shell_name_character(text_[at_])) word += text_[at_++];
    if (word.empty()) return std::nullopt;
    if (std::isdigit(static_cast<unsigned char>(word[0])) != 0) return parse_number<std::int64_t>(word);
    const auto found = environment_.variables.find(word);
    if (found == environment_.variables.end()) return std::nullopt;
    return parse_number<std::int64_t>(trimmed(found->second.text()));
  }

  std::string_view text_;
  const ShellEnvironment& environment_;
  std::size_t at_ = 0;
};

/// A condition of tests, `!`, `-a`, `-o`, `&&` and `||`.
class ShellCondition {
 public:
  explicit ShellCondition(const std::vector<std::string>& words) : words_(words) {}

  std::optional<bool> run() {
    const std::optional<bool> value = any(0);
    return at_ == words_.size() ? value : std::nullopt;
  }

 private:
  bool eat(std::string_view one, std::string_view other = {}) {
    if (at_ >= words_.size() || (words_[at_] != one && (other.empty() || words_[at_] != other))) return false;
    ++at_;
    return true;
  }

  std::optional<bool> any(int depth) {
    std::optional<bool> left = all(depth);
    while (eat("||", "-o")) {
      const std::optional<bool> right = all(depth);
      if (left == true || right == true)
        left = true;
      else if (!left.has_value() || !right.has_value())
        left = std::nullopt;
    }
    return left;
  }

  std::optional<bool> all(int depth) {
    std::optional<bool> left = one(depth);
    while (eat("&&", "-a")) {
      const std::optional<bool> right = one(depth);
      if (left == false || right == false)
        left = false;
      else if (!left.has_value() || !right.has_value())
        left = std::nullopt;
    }
    return left;
  }

  std::optional<bool> one(int depth) {
    if (depth > 50 || at_ >= words_.size()) return std::nullopt;
    if (at_ + 1 < words_.size() && eat("!")) {
      const std::optional<bool> value = one(depth + 1);
      return value.has_value() ? std::optional(!*value) : std::nullopt;
    }
    if (eat("(")) {
      const std::optional<bool> value = any(depth + 1);
      eat(")");
      return value;
    }
    if (at_ + 2 < words_.size() && is_comparison(words_[at_ + 1])) {
      at_ += 3;
      return compare(words_[at_ - 3], words_[at_ - 2], words_[at_ - 1]);
    }
    const std::string& first = words_[at_++];
    const bool tests = first.size() == 2 && first[0] == '-' && at_ < words_.size();
    if (!tests) return is_shell_unknown(first) ? std::nullopt : std::optional(!first.empty());
    const std::string& tested = words_[at_++];
    if (is_shell_unknown(tested) || (first != "-z" && first != "-n")) return std::nullopt;  // files
    return tested.empty() == (first == "-z");
  }

  static bool is_comparison(std::string_view word) {
    static constexpr std::array<std::string_view, 12> signs{"=",   "==",  "!=",  "-eq", "-ne", "-lt",
                                                            "-le", "-gt", "-ge", "=~",  "<",   ">"};
    return std::ranges::find(signs, word) != signs.end();
  }

  static std::optional<bool> compare(const std::string& left, const std::string& sign, const std::string& right) {
    if (is_shell_unknown(left) || is_shell_unknown(right)) return std::nullopt;
    if (sign == "=" || sign == "==") return left == right || matches(right, left);
    if (sign == "!=") return left != right && !matches(right, left);
    const auto a = parse_number<std::int64_t>(left);
    const auto b = parse_number<std::int64_t>(right);
    if (!a.has_value() || !b.has_value() || sign == "=~" || sign == "<" || sign == ">") return std::nullopt;
    if (sign == "-eq") return *a == *b;
    if (sign == "-ne") return *a != *b;
    if (sign == "-lt") return *a < *b;
    if (sign == "-le") return *a <= *b;
    return sign == "-gt" ? *a > *b : *a >= *b;
  }

  const std::vector<std::string>& words_;
  std::size_t at_ = 0;
};

}  // namespace

std::optional<std::int64_t> ShellEnvironment::sum(std::string_view written) const {
  const std::string known = text(written);
  return is_shell_unknown(known) ? std::nullopt : ShellSum(known, *this).run();
}

std::optional<bool> ShellEnvironment::condition(const std::vector<std::string>& words) const {
  return ShellCondition(words).run();
}

}  // namespace hcclsim::study
