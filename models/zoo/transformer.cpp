#include <utility>

#include "models/graph_builder.hpp"
#include "models/zoo/networks.hpp"

/// Networks of attention. Parameter names are those of GPT-2, without the numbers of blocks.
namespace hcclsim::models::zoo {

Graph tiny_gpt(std::string title, std::uint32_t sequences) {
  constexpr std::uint32_t length = 16;
  constexpr std::uint32_t vocabulary = 32;
  constexpr std::uint32_t features = 64;
  constexpr std::uint32_t heads = 4;
  GraphBuilder builder = GraphBuilder::of_tokens(std::move(title), sequences, length);
  OperatorId x = builder.token_embedding("wte", GraphBuilder::input(), vocabulary, features);
  x = builder.position_embedding("wpe", x);

  OperatorId branch = builder.linear("c_attn", builder.layer_norm("ln_1", x), 3 * features, true);
  branch = builder.linear("c_proj", builder.attention("attn", branch, heads, true), features, true);
  x = builder.add("add_1", branch, x);

  branch = builder.linear("fc", builder.layer_norm("ln_2", x), 4 * features, true);
  branch = builder.linear("proj", builder.gelu("gelu", branch), features, true);
  x = builder.add("add_2", branch, x);

  x = builder.linear("head", builder.layer_norm("ln_f", x), vocabulary, false);
  return std::move(builder).finish(x);
}

}  // namespace hcclsim::models::zoo
