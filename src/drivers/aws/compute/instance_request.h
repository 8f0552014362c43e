#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/log/logging.h"
#include "driver/cloud/launch/candidates.h"
#include "drivers/aws/api/query.h"
#include "drivers/aws/config/aws_config.h"
#include "drivers/aws/storage/machine_images.h"

namespace nodepool::drivers::aws {

using Candidate = driver::cloud::Candidate<AwsPlace>;

// What a label's node may be in a pool, the preferred one first: each place for the first type, then for the
// next. Empty: the label has no type.
std::vector<Candidate> CandidatesOf(const AwsLabel& label, const AwsPool& pool);

// The same for Adapter::Candidates; empty where there is no choice, and for fleets, in which AWS chooses.
std::vector<std::string> CandidateNames(const AwsLabel& label, const AwsPool& pool);

const AwsLabel& LabelOf(const driver::cloud::CreateParameters& parameters);
const AwsPool& PoolOf(const driver::cloud::CreateParameters& parameters);

// What is created: the candidate of the parameters.
Candidate ChosenOf(const driver::cloud::CreateParameters& parameters);

// The tags of instance and volumes (driver-aws.md 8.2). A template that cannot be filled is logged and left
// out.
std::map<std::string, std::string> InstanceTags(const driver::cloud::CreateParameters& parameters,
                                                const log::Logger& logger);

// The call that makes the instance (driver-aws.md 8.3). EC2 makes one instance for a token, however often it
// gets the call. `host`: the dedicated host on which it runs; empty: AWS chooses.
Query RunInstances(const driver::cloud::CreateParameters& parameters, const MachineImage& image,
                   const std::map<std::string, std::string>& tags, const std::string& token,
                   const std::string& host);

// The image's root volume with what the label wants of it, as parameters that begin with `prefix`. What AWS
// refuses for the volume's type is left out.
void AddRootVolume(const BlockDevice& device, const RootVolume& wanted, const std::string& prefix,
                   Query& query);

// The tags of what a call makes: the same for each kind of resource, such as "instance" and "volume".
void AddTagSpecifications(const std::vector<std::string>& resources,
                          const std::map<std::string, std::string>& tags, Query& query);

}  // namespace nodepool::drivers::aws
