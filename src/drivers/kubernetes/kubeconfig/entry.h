#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/yaml/value.h"
#include "drivers/kubernetes/kubeconfig/kubeconfig.h"
#include "process/command.h"

namespace nodepool::drivers::kubernetes {

// `path` with the home directory in place of "~".
std::string WithHome(const std::string& path, const process::Environment& environment);

// An entry of a kubeconfig: the mapping of a cluster, context or user, and the file that it is in.
class ConfigEntry {
 public:
  ConfigEntry(std::string path, config::Value value) : path_(std::move(path)), value_(std::move(value)) {}

  const std::string& path() const { return path_; }
  const config::Value& value() const { return value_; }
  std::string folder() const;
  ConfigEntry Sub(std::string_view key) const;
  bool Has(std::string_view key) const;

  // Empty when there is no such scalar.
  std::string Text(std::string_view key) const;
  bool Truth(std::string_view key) const;
  std::vector<std::string> Texts(std::string_view key) const;
  // A path relative to the file's folder, as an absolute one; empty: it is not set.
  std::string Path(std::string_view key) const;
  // What `<key>-data` holds in base64, else the content of the file that `key` names, which is added to
  // `files`; empty: neither is set. Error(kInvalid) names what cannot be read.
  std::string PemOrFile(const std::string& key, std::vector<std::string>& files) const;

 private:
  std::string path_;
  config::Value value_;
};

// The user of a kubeconfig; of several kinds of credentials the first of driver-kubernetes.md 3.2. Adds what
// it reads to `files`. Error(kInvalid) names the file.
User ReadUser(const ConfigEntry& entry, std::vector<std::string>& files);

}  // namespace nodepool::drivers::kubernetes
