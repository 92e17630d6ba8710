#include <memory>
#include <string>
#include <vector>

#include "cli/commands/commands.hpp"
#include "cli/options/parse/command.hpp"
#include "cli/options/parse/completion.hpp"
#include "cli/terminal/output.hpp"
#include "models/zoo/zoo.hpp"
#include "study/platform/shipped_platforms.hpp"

namespace hcclsim::cli {
namespace {

// Each asks `hcclsim complete` for what may stand in the place of the last word; a line "files" is for names of files.
constexpr const char* bash = R"(# source <(hcclsim completion bash)
_hcclsim() {
  local cur prev words cword line
  _get_comp_words_by_ref -n =: cur prev words cword 2>/dev/null || { cur=${COMP_WORDS[COMP_CWORD]}; words=("${COMP_WORDS[@]}"); cword=$COMP_CWORD; }
  COMPREPLY=()
  while IFS= read -r line; do
    if [[ $line == files ]]; then
      compopt -o default 2>/dev/null
    else
      COMPREPLY+=("${line#word }")
    fi
  done < <("${words[0]}" complete "${words[@]:1:cword}" 2>/dev/null)
  [[ $cur == *=* ]] && COMPREPLY=("${COMPREPLY[@]#"${cur%%=*}="}")
  return 0
}
complete -F _hcclsim hcclsim
)";
constexpr const char* zsh = R"(#compdef hcclsim
# hcclsim completion zsh > "${fpath[1]}/_hcclsim"
_hcclsim() {
  local -a found
  local line files=0
  while IFS= read -r line; do
    if [[ $line == files ]]; then files=1; else found+=("${line#word }"); fi
  done < <("${words[1]}" complete "${(@)words[2,CURRENT]}" 2>/dev/null)
  compadd -- "${found[@]}"
  (( files )) && _files
  return 0
}
compdef _hcclsim hcclsim
)";
constexpr const char* fish = R"(# hcclsim completion fish > ~/.config/fish/completions/hcclsim.fish
function __hcclsim_complete
  set -l words (commandline --current-process --tokenize --cut-at-cursor) (commandline --current-token --cut-at-cursor)
  for line in ($words[1] complete $words[2..-1] 2>/dev/null)
    if test "$line" = files
      __fish_complete_path (commandline --current-token)
    else
      string replace --regex '^word ' '' -- $line
    end
  end
end
complete --command hcclsim --no-files --arguments '(__hcclsim_complete)'
)";

/// Names that come with hcclsim, also of arguments.
std::vector<std::string> known_values(const Option& option) {
  if (option.key() == "platform") return study::shipped_platforms();
  if (option.name() == "OP") {
    return {"allgather", "allgatherv", "allreduce", "alltoall", "alltoallv", "alltoallvc",    "batchsendrecv",
            "broadcast", "gather",     "reduce",    "scatter",  "sendrecv",  "reducescatter", "reducescatterv"};
  }
  if (option.name() == "COMMAND") return {"collective", "job", "run"};  // whose points a sweep computes
  if (option.key() == "optimizer-parallel") return {"off", "on", "dealt", "zero1", "zero2", "zero3"};
  if (option.key() == "model" || option.name() == "NETWORK") {
    std::vector<std::string> names;
    for (const models::ModelInfo& info : models::model_list()) names.emplace_back(info.name);
    return names;
  }
  return {};
}

}  // namespace

void add_completion_commands(Command& app) {
  Command& scripts = app.add_command("completion", "The script with which a shell completes commands and options");
  const auto shell = std::make_shared<std::string>();
  scripts.add("SHELL", one_of({"bash", "zsh", "fish"}, *shell), "For which shell").required();
  scripts.footer(
      "Examples:\n"
      "  hcclsim completion bash > /etc/bash_completion.d/hcclsim");
  scripts.on_run([shell] { print(*shell == "bash" ? bash : *shell == "zsh" ? zsh : fish); });

  Command& asked = app.add_command("complete", "What may stand in the place of the last word, for these scripts");
  asked.footer(
      "Examples:\n"
      "  hcclsim complete run --hcom");
  asked.keep_rest();
  asked.on_run([&app, &asked] {
    app.declare_all();
    const Completion found = completion_of(app, asked.rest(), known_values);
    std::string text;
    for (const std::string& word : found.words) text += "word " + word + '\n';
    if (found.files) text += "files\n";
    print(text);
  });
}

}  // namespace hcclsim::cli
