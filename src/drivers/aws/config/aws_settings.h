#pragma once

#include "drivers/aws/config/aws_config.h"
#include "drivers/provider_section.h"

namespace nodepool::drivers::aws {

// A provider's section of driver `aws` (driver-aws.md 2); strict validation agrees with the Python validator.
// The lists of a provider and of a pool are read by LoadAwsConfig.
const Bindings<AwsConfig>& AwsSettings();
const Bindings<AwsCloudImage>& AwsCloudImageSettings();
const Bindings<AwsDiskImage>& AwsDiskImageSettings();
const Bindings<AwsPool>& AwsPoolSettings();
const Bindings<AwsLabel>& AwsLabelSettings();

// The words of `import-method`.
const Words<ImportMethod>& ImportMethods();

const config::Schema& AwsSchema();

}  // namespace nodepool::drivers::aws
