#pragma once

#include <string>
#include <string_view>

namespace nodepool::drivers::kubernetes {

// Paths of the API (driver-kubernetes.md 4.1).
inline constexpr const char* kNamespaces = "/api/v1/namespaces";
inline constexpr const char* kAllPods = "/api/v1/pods";
inline constexpr const char* kNodes = "/api/v1/nodes";
inline constexpr const char* kProjects = "/apis/project.openshift.io/v1/projects";
inline constexpr const char* kProjectRequests = "/apis/project.openshift.io/v1/projectrequests";
inline constexpr const char* kOwnUser = "/apis/user.openshift.io/v1/users/~";

// A collection of a namespace: InNamespace("main-1", "pods").
std::string InNamespace(std::string_view name, std::string_view collection);
// The same of the group of roles and their bindings.
std::string RbacInNamespace(std::string_view name, std::string_view collection);

// The kind of objects that a path is about, for metrics: "pods" of /api/v1/namespaces/main-1/pods/small.
std::string CollectionOf(std::string_view path);

}  // namespace nodepool::drivers::kubernetes
