// Any text as a file that configures logging, in YAML and in INI: reading it ends with a setup, whose formats
// write any record, or with an error that begins with the file's path.
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <string>

#include "config/logging/log_file.h"

namespace nodepool {
namespace {

void WriteRecords(const log::Setup& setup) {
  const log::Record record{
      log::Level::kInfo, "nodepool.launcher", {"event", "100-0000000001", ""}, "one\ntwo"};
  for (const auto& [name, handler] : setup.handlers) {
    (void)handler.format.Format(record, log::LogTime());
  }
  for (const auto& [name, logger] : setup.loggers) {
    for (const std::string& handler : logger.handlers) {
      if (!setup.handlers.contains(handler)) __builtin_trap();
    }
  }
  if (!setup.loggers.contains("")) __builtin_trap();
}

void Read(const std::string& path, std::string_view text) {
  std::ofstream(path, std::ios::binary).write(text.data(), static_cast<std::streamsize>(text.size()));
  Expected<log::Setup> setup = config::ReadLogFile(path);
  unlink(path.c_str());
  if (setup) {
    WriteRecords(*setup);
  } else if (setup.error().message().find(path) == std::string::npos) {
    __builtin_trap();
  }
}

}  // namespace
}  // namespace nodepool

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::string path = "/dev/shm/log_config_fuzz." + std::to_string(getpid());
  std::string_view text(reinterpret_cast<const char*>(data), size);
  nodepool::Read(path + ".yaml", text);
  nodepool::Read(path + ".conf", text);
  return 0;
}
