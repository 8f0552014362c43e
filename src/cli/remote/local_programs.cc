#include "cli/remote/local_programs.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/text.h"

namespace nodepool::cli {
namespace {

namespace fs = std::filesystem;

// Where execvp() searches without PATH.
constexpr const char* kUsualPath = "/bin:/usr/bin";

bool IsProgram(const std::string& path) {
  return fs::is_regular_file(path) && ::access(path.c_str(), X_OK) == 0;
}

bool IsThere(const std::string& program) {
  if (program.find('/') != std::string::npos) return IsProgram(program);
  const char* path = std::getenv("PATH");
  return std::ranges::any_of(Split(path == nullptr ? kUsualPath : path, ':'), [&](const std::string& place) {
    return IsProgram((place.empty() ? "." : place) + "/" + program);
  });
}

struct Need {
  std::string program;
  std::string user;  // what runs it
};

// In the order in which they are run.
std::vector<Need> NeedsOf(const ExecOptions& options) {
  std::vector<Need> needs;
  if (options.sync) needs.push_back({"rsync", "--sync needs it"});
  if (options.sync || !options.runs_here) needs.push_back({"ssh", "it is needed to log in"});
  bool is_program = options.runs_here && options.command.size() > 1;  // one word is a line for the shell
  if (is_program) needs.push_back({options.command.front(), "it is the command"});
  if (!options.fetch.empty()) needs.push_back({"scp", "--fetch needs it"});
  return needs;
}

}  // namespace

std::string FaultOfThisComputer(const ExecOptions& options) {
  for (const Need& need : NeedsOf(options)) {
    if (!IsThere(need.program))
      return fmt::format("{} is not installed here; {}", Excerpt(need.program), need.user);
  }
  if (!options.inventory) return "";
  fs::path folder = fs::absolute(*options.inventory).parent_path();
  return ::access(folder.c_str(), W_OK) == 0
             ? ""
             : fmt::format("{} cannot be written; --inventory needs it", Excerpt(folder.string()));
}

}  // namespace nodepool::cli
