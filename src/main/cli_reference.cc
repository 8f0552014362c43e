#include <filesystem>
#include <fstream>
#include <iostream>

#include "cli/reference/command_line.h"

// Writes manual pages and shell completions, generated from the declared command lines, to the subfolders
// man, bash, zsh and fish of the given folder.

namespace nodepool {
namespace {

namespace fs = std::filesystem;

void Write(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream file(path);
  file << text;
  file.close();
  if (!file) throw std::runtime_error("cannot write " + path.string());
}

void WriteAll(const fs::path& folder) {
  for (const cli::CommandLine& program : cli::AllPrograms()) {
    std::string page = program.name == "nodepool standalone" ? "nodepool-standalone" : program.name;
    Write(folder / "man" / (page + "." + std::to_string(cli::ManSection(program))), cli::ManPage(program));
    if (page != program.name) continue;  // a command of another program
    Write(folder / "bash" / program.name, cli::BashCompletion(program));
    Write(folder / "zsh" / ("_" + program.name), cli::ZshCompletion(program));
    Write(folder / "fish" / (program.name + ".fish"), cli::FishCompletion(program));
  }
}

}  // namespace
}  // namespace nodepool

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: cli_reference FOLDER\n";
    return 2;
  }
  try {
    nodepool::WriteAll(argv[1]);
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "cli_reference: " << error.what() << "\n";
    return 1;
  }
}
