#include "machines.h"

#include <filesystem>
#include <fstream>

namespace lantern_driver {

namespace fs = std::filesystem;

void Machines::Make(const Machine& machine) const {
  fs::create_directories(folder_);
  fs::path path = fs::path(folder_) / machine.id, part = fs::path(folder_) / ("." + machine.id);
  std::ofstream file(part);
  file.exceptions(std::ios::failbit | std::ios::badbit);
  file << machine.ram << "\n";
  for (const auto& [key, value] : machine.metadata) file << key << " " << value << "\n";
  file.close();
  fs::rename(part, path);
}

void Machines::Remove(const std::string& id) const {
  fs::remove(fs::path(folder_) / fs::path(id).filename());
}

std::vector<Machine> Machines::List() const {
  std::vector<Machine> machines;
  std::error_code no_folder;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_, no_folder)) {
    Machine machine;
    machine.id = entry.path().filename();
    std::ifstream file(entry.path());
    // Not listed: a machine that is being created, or was removed just now.
    if (machine.id.starts_with(".") || !(file >> machine.ram)) continue;
    for (std::string key, value; file >> key && std::getline(file >> std::ws, value);)
      machine.metadata[key] = value;
    machines.push_back(std::move(machine));
  }
  return machines;
}

}  // namespace lantern_driver
