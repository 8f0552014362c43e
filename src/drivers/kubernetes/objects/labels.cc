#include "drivers/kubernetes/objects/labels.h"

#include "driver/cloud/api/request_template.h"
#include "drivers/kubernetes/config/names.h"

namespace nodepool::drivers::kubernetes {

namespace {

void AddDynamic(const KubernetesLabel& label, const driver::cloud::CreateParameters& parameters,
                const log::Logger& logger, std::map<std::string, std::string>& labels) {
  for (const auto& [key, text] : label.dynamic_labels) {
    try {
      std::string value = driver::cloud::api::FillTemplate(text, parameters.request_id, parameters.request);
      labels[key] = ToLabelValue(value);
      if (labels[key] != value)
        logger.Info("The value of label {} has become '{}': the cluster takes no other", key, labels[key]);
    } catch (const Error& error) {
      logger.Error("Label {} is left out: {}", key, error.message());
    }
  }
}

}  // namespace

std::map<std::string, std::string> LabelsOf(const KubernetesLabel& label,
                                            const driver::cloud::CreateParameters& parameters,
                                            const log::Logger& logger) {
  std::map<std::string, std::string> labels = label.labels;
  AddDynamic(label, parameters, logger, labels);
  for (const auto& [key, value] : parameters.metadata) labels[key] = value;
  labels[kLabelKey] = label.name.str();
  return labels;
}

}  // namespace nodepool::drivers::kubernetes
