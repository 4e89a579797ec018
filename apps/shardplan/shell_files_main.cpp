// Writes the files that an installation brings beside the program: FOLDER/shardplan.bash, _shardplan, shardplan.fish,
// shardplan.1, schema/*.schema.json.
#include <cstdio>
#include <fstream>
#include <string>

#include "shardplan/catalog/catalog.hpp"
#include "shardplan/io/schemas.hpp"
#include "shell_files.hpp"

int main(int count, char** words) {
  if (count != 2) {
    std::fputs("usage: shardplan_shell_files FOLDER\n", stderr);
    return 2;
  }
  const auto write = [&](const std::string& name, const std::string& text) {
    std::ofstream out(std::string(words[1]) + "/" + name, std::ios::binary);
    out << text;
    out.flush();
    return out.good();
  };
  bool good = write("shardplan.bash", shardplan::cli::bash_completion()) &&
              write("_shardplan", shardplan::cli::zsh_completion()) &&
              write("shardplan.fish", shardplan::cli::fish_completion()) &&
              write("shardplan.1", shardplan::cli::man_page());
  for (const std::string_view kind : shardplan::io::schema_names()) {
    const auto text = shardplan::io::schema_text(kind, shardplan::catalog::builtin_catalog());
    good = good && write("schema/" + std::string(kind) + ".schema.json", text.value_or(""));
  }
  if (!good) std::fputs("shardplan_shell_files: cannot write there\n", stderr);
  return good ? 0 : 1;
}
