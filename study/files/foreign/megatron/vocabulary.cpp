#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

#include "base/text.hpp"
#include "study/files/foreign/megatron/network.hpp"

namespace hcclsim::study {
namespace {

class MegatronVocabulary {
 public:
  MegatronVocabulary(MegatronArguments& args, const MegatronNetwork& network) : args_(args), network_(network) {}

  /// Filled up to a multiple of --make-vocab-size-divisible-by times the ranks that share it.
  void map() {
    if (args_.has("padded-vocab-size")) {
      if (args_.has("vocab-size"))
        args_.writer().no_effect(args_.source("vocab-size"), "--padded-vocab-size says how many there are");
      args_.set("padded-vocab-size", "vocabulary", std::to_string(args_.at_least_one("padded-vocab-size")));
      return;
    }
    // Those of pretrain_gpt.py and pretrain_bert.py unless told otherwise.
    const bool bert = network_.family == MegatronFamily::bert;
    const std::string tokenizer =
        args_.text("tokenizer-type").value_or(bert ? "BertWordPieceLowerCase" : "GPT2BPETokenizer");
    std::uint64_t tokens = args_.whole("vocab-size").value_or(0);
    std::string from =
        args_.has("vocab-size") ? args_.source("vocab-size") : fmt::format("the tokens of {}", tokenizer);
    if (tokens > 0 && tokenizer == "NullTokenizer") ++tokens;  // one for the end of a document
    if (tokens == 0) tokens = tokens_of(tokenizer, from);
    if (tokens == 0) {
      args_.refuse("vocab-size",
                   fmt::format("how many tokens {} has, its files alone tell; write --vocab-size into the "
                               "script, or give --vocabulary beside",
                               tokenizer));
      tokens = network_.family == MegatronFamily::decoder ? 32000
               : bert                                     ? 30522
                      : 50257;  // if it is left out: those of the published networks
    }
    const std::uint64_t multiple =
        args_.at_least_one("make-vocab-size-divisible-by", 128) * args_.at_least_one("tensor-model-parallel-size");
    const std::uint64_t padded = (tokens + multiple - 1) / multiple * multiple;
    args_.writer().set(fmt::format("{}, filled up to a multiple of {}", from, multiple), "vocabulary",
                       std::to_string(padded), args_.line_of("num-layers"));
  }

 private:
  /// Tokens of a kind of tokenizer, or of one whose path names a network with published files, or of the network that
  /// the script is called by; 0: not known. `from`: what tells it.
  [[nodiscard]] std::uint64_t tokens_of(std::string_view kind, std::string& from) {
    static constexpr std::array<std::pair<std::string_view, std::uint64_t>, 4> kinds{{{"GPT2BPETokenizer", 50257},
                                                                                      {"Llama2Tokenizer", 32000},
                                                                                      {"BertWordPieceLowerCase", 30522},
                                                                                      {"BertWordPieceCase", 28996}}};
    for (const auto& [name, size] : kinds) {
      if (kind == name) return size;
    }
    for (const char* const argument : {"tokenizer-name-or-path", "tokenizer-model"}) {
      const auto path = args_.all().find(argument);
      if (path == args_.all().end() || path->second.empty()) continue;
      if (const std::uint64_t tokens = tokens_of_network(readable(path->second.front())); tokens > 0) return tokens;
    }
    const std::string& file = args_.writer().file();
    const std::string script = file.substr(file.rfind('/') + 1);
    const std::uint64_t tokens = tokens_of_network(script);
    if (tokens > 0) {
      from = fmt::format("{} tokens of the network that the script is called by", tokens);
    } else if (script.find("deepseek_500b") != std::string::npos) {
      args_.writer().leave_out("the number of tokens", "it is not published; those of LLaMA-2 are taken");
      from = "32000 tokens";
      return 32000;
    }
    return tokens;
  }

  static std::uint64_t tokens_of_network(const std::string& name) {
    static constexpr std::array<std::pair<std::string_view, std::uint64_t>, 4> networks{
        {{"llama3", 128256}, {"llama2", 32000}, {"gpt2", 50257}, {"baichuan213b", 125696}}};
    std::string letters = in_lower_case(name);
    std::erase_if(letters, [](unsigned char c) { return std::isalnum(c) == 0 && c != '/'; });
    for (const auto& [network, size] : networks) {
      if (letters.find(network) != std::string::npos) return size;
    }
    return 0;
  }

  MegatronArguments& args_;
  const MegatronNetwork& network_;
};

}  // namespace

void map_megatron_vocabulary(MegatronArguments& arguments, const MegatronNetwork& network) {
  MegatronVocabulary(arguments, network).map();
}

}  // namespace hcclsim::study
