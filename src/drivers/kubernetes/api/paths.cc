#include "drivers/kubernetes/api/paths.h"

#include <vector>

#include "base/text.h"

namespace nodepool::drivers::kubernetes {

std::string InNamespace(std::string_view name, std::string_view collection) {
  return std::string(kNamespaces) + "/" + std::string(name) + "/" + std::string(collection);
}

std::string RbacInNamespace(std::string_view name, std::string_view collection) {
  return "/apis/rbac.authorization.k8s.io/v1/namespaces/" + std::string(name) + "/" + std::string(collection);
}

std::string CollectionOf(std::string_view path) {
  std::vector<std::string> parts = Split(path.substr(0, path.find('?')), '/');
  // "", api, v1, ... or "", apis, group, v1, ...
  std::size_t first = parts.size() > 1 && parts[1] == "apis" ? 4 : 3;
  if (parts.size() <= first) return "api";
  bool is_inside = parts[first] == "namespaces" && parts.size() > first + 2;
  return is_inside ? parts[first + 2] : parts[first];
}

}  // namespace nodepool::drivers::kubernetes
