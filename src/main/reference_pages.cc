#include <filesystem>
#include <fstream>
#include <iostream>

#include "main/builtin_drivers.h"
#include "main/reference/pages.h"

// Writes the pages of reference (reference/pages.h) below the given folder of documents.

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
  driver::Registry drivers;
  AddBuiltinDrivers(drivers);
  for (const reference::Page& page : reference::AllPages(drivers)) Write(folder / page.path, page.text);
}

}  // namespace
}  // namespace nodepool

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: reference_pages FOLDER\n";
    return 2;
  }
  try {
    nodepool::WriteAll(argv[1]);
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "reference_pages: " << error.what() << "\n";
    return 1;
  }
}
