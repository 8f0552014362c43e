#include "drivers/kubernetes/objects/pod_body.h"

#include <fmt/format.h>

#include <boost/json/array.hpp>

#include "drivers/kubernetes/objects/default_command.h"

namespace nodepool::drivers::kubernetes {

namespace json = boost::json;

namespace {

json::object Amounts(const PodAmounts& amounts, const KubernetesLabel& label) {
  json::object result;
  if (amounts.cpu.value_or(0) != 0) result["cpu"] = *amounts.cpu;
  if (amounts.memory.value_or(0) != 0) result["memory"] = fmt::format("{}Mi", *amounts.memory);
  if (amounts.storage.value_or(0) != 0) result["ephemeral-storage"] = fmt::format("{}M", *amounts.storage);
  if (label.gpu && label.gpu_resource) result[*label.gpu_resource] = fmt::format("{:.2f}", *label.gpu);
  return result;
}

json::object ContainerOf(const KubernetesLabel& label) {
  json::object container = {{"name", label.name.str()},
                            {"image", label.image.value_or("")},
                            {"imagePullPolicy", label.image_pull},
                            {"env", label.env}};
  SetDefaultCommand(container);
  json::object resources;
  if (json::object requests = Amounts(label.requests, label); !requests.empty())
    resources["requests"] = std::move(requests);
  if (json::object limits = Amounts(label.limits, label); !limits.empty())
    resources["limits"] = std::move(limits);
  if (!resources.empty()) container["resources"] = std::move(resources);
  if (!label.volume_mounts.empty()) container["volumeMounts"] = label.volume_mounts;
  if (label.privileged) container["securityContext"] = json::object{{"privileged", *label.privileged}};
  return container;
}

json::object SpecOf(Kind kind, const KubernetesLabel& label) {
  if (!label.spec.empty()) return label.spec;
  json::object spec;
  spec["containers"] = json::array{ContainerOf(label)};
  if (kind != Kind::kKubernetes) spec["imagePullSecrets"] = label.image_pull_secrets;
  if (!label.node_selector.empty()) spec["nodeSelector"] = ToJson(label.node_selector);
  if (label.scheduler_name) spec["schedulerName"] = *label.scheduler_name;
  if (!label.volumes.empty()) spec["volumes"] = label.volumes;
  return spec;
}

}  // namespace

json::object ToJson(const std::map<std::string, std::string>& texts) {
  json::object result;
  for (const auto& [key, text] : texts) result[key] = text;
  return result;
}

json::object PodBody(Kind kind, const KubernetesLabel& label, const std::string& name,
                     const std::map<std::string, std::string>& labels) {
  json::object metadata = {
      {"name", name}, {"labels", ToJson(labels)}, {"annotations", ToJson(label.annotations)}};
  return {{"apiVersion", "v1"},
          {"kind", "Pod"},
          {"metadata", std::move(metadata)},
          {"spec", SpecOf(kind, label)}};
}

}  // namespace nodepool::drivers::kubernetes
