#include "cli/commands/image_data.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>

#include "base/error.h"
#include "cli/commands/commands.h"
#include "store/image_data.h"

namespace nodepool::cli {
namespace {

namespace json = boost::json;

constexpr int kOwnerOnly = 0600;

[[noreturn]] void Refuse(const std::string& path) {
  throw Error(Verdict::kFail, fmt::format("{}: {}", path, std::strerror(errno)));
}

// Whole or not at all.
void WriteFile(const std::string& path, const std::string& text) {
  std::string part = path + ".part";
  ::unlink(part.c_str());
  int file = ::open(part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kOwnerOnly);
  if (file < 0) Refuse(part);
  std::size_t done = 0;
  while (done < text.size()) {
    ssize_t size = ::write(file, text.data() + done, text.size() - done);
    if (size < 0) break;
    done += static_cast<std::size_t>(size);
  }
  bool is_good = done == text.size() && ::fsync(file) == 0;
  is_good = ::close(file) == 0 && is_good;
  if (!is_good || std::rename(part.c_str(), path.c_str()) != 0) Refuse(path);
}

std::map<std::string, std::string> ReadFile(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) Refuse(path);
  std::ostringstream text;
  text << file.rdbuf();
  std::map<std::string, std::string> records;
  try {
    json::value content = json::parse(text.str());
    for (const auto& member : content.as_object()) {
      records.emplace(member.key(), std::string(member.value().as_string()));
    }
  } catch (const std::exception&) {
    throw Error(Verdict::kInvalid, fmt::format("{}: expected a JSON object of paths and texts", path));
  }
  return records;
}

}  // namespace

Task<int> ExportImageData(Context& context, std::string path) {
  std::map<std::string, std::string> records = co_await store::ExportImages(context.store);
  json::object content;
  for (const auto& [place, text] : records) content[place] = text;
  WriteFile(path, json::serialize(content));
  co_return 0;
}

Task<int> ImportImageData(Context& context, std::string path) {
  std::map<std::string, std::string> records = ReadFile(path);
  co_await store::ImportImages(context.store, std::move(records));
  co_return 0;
}

void RegisterImageData(CLI::App& app, Invocation& invocation) {
  auto add = [&](const char* name, const char* help, Task<int> (*run)(Context&, std::string)) {
    auto path = std::make_shared<std::string>();
    CLI::App* command = app.add_subcommand(name, help);
    command->add_option("path", *path, "the file")->required()->type_name("FILE");
    OnCommand(*command, invocation, [run, path](Context& context) { return run(context, *path); });
  };
  add("export-image-data", "write the records of images to a file", &ExportImageData);
  add("import-image-data", "read them back; all daemons rest", &ImportImageData);
}

}  // namespace nodepool::cli
