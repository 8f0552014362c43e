#include "driver/loading/load_drivers.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/error.h"
#include "base/text.h"
#include "driver/plugin.h"

namespace nodepool::driver {

namespace {

constexpr std::string_view kMark = NODEPOOL_DRIVER_API_MARK;
constexpr std::string_view kOurApi = NODEPOOL_DRIVER_API;
constexpr std::size_t kLongestApi = 200;

Error Fault(std::string message) { return Error(Verdict::kInvalid, std::move(message)); }

// What the file says that it was made for.
std::string ApiOf(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(file)), {});
  if (!file) throw Fault("cannot be read");
  std::size_t mark = bytes.find(kMark);
  if (mark == std::string::npos)
    throw Fault("is no Nodepool driver: NODEPOOL_DRIVER is missing in its sources");
  std::string_view rest = std::string_view(bytes).substr(mark + kMark.size(), kLongestApi);
  return std::string(rest.substr(0, rest.find('\0')));
}

// The linker's words, with the symbol that is missing made readable.
std::string Readable(std::string message) {
  std::size_t start = message.find("_Z");
  if (start == std::string::npos) return message;
  std::size_t end = std::min(message.find_first_of(" \t", start), message.size());
  std::string symbol = message.substr(start, end - start);
  int status = 0;
  char* readable = abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status);
  if (status == 0) message.replace(start, symbol.size(), readable);
  std::free(readable);
  return message;
}

std::unique_ptr<Driver> Open(const std::filesystem::path& path) {
  std::string api = ApiOf(path);
  if (api != kOurApi) {
    throw Fault(fmt::format("was built for \"{}\", this program offers \"{}\"; build it anew", Excerpt(api),
                            kOurApi));
  }
  void* object = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (object == nullptr) throw Fault(Readable(dlerror()));
  auto create = reinterpret_cast<decltype(&nodepool_create_driver)>(dlsym(object, "nodepool_create_driver"));
  if (create == nullptr) throw Fault("has no function nodepool_create_driver");
  std::unique_ptr<Driver> driver(create());
  if (!driver) throw Fault("makes no driver");
  return driver;
}

std::vector<std::filesystem::path> ObjectsIn(const std::string& directory) {
  std::vector<std::filesystem::path> objects;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.path().extension() == ".so") objects.push_back(entry.path());
  }
  std::ranges::sort(objects);
  return objects;
}

}  // namespace

std::vector<std::string> DriverDirectories(std::vector<std::string> named, const char* path_variable) {
  std::vector<std::string> directories = std::move(named);
  if (directories.empty() && path_variable != nullptr) {
    directories = Split(path_variable, ':');
    std::erase(directories, "");
  }
  std::error_code error;
  std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  std::filesystem::path installed = program.parent_path().parent_path() / "lib/nodepool/drivers";
  if (!error && std::filesystem::is_directory(installed, error)) directories.push_back(installed);
  return directories;
}

std::vector<std::string> LoadDrivers(const std::vector<std::string>& directories, Registry& drivers) {
  std::vector<std::string> faults;
  for (const std::string& directory : directories) {
    std::vector<std::filesystem::path> objects;
    try {
      objects = ObjectsIn(directory);
    } catch (const std::filesystem::filesystem_error& error) {
      faults.push_back(
          fmt::format("the drivers directory {} cannot be read: {}", directory, error.code().message()));
    }
    for (const std::filesystem::path& object : objects) {
      try {
        drivers.Add(Open(object), object);
      } catch (...) {
        faults.push_back(
            fmt::format("{} is left out: {}", object.string(), MessageOf(std::current_exception())));
      }
    }
  }
  return faults;
}

}  // namespace nodepool::driver
