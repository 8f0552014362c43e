#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "async/event.h"
#include "async/task_group.h"
#include "drivers/aws/api/ec2.h"

namespace nodepool::drivers::aws {

// Ends instances; those that are wanted at about the same moment go in one call (driver-aws.md 12).
class Terminations {
 public:
  // The calls belong to `tasks`; everything outlives it.
  Terminations(Ec2& ec2, TaskGroup& tasks) : ec2_(ec2), tasks_(tasks) {}

  // Ends when EC2 has accepted it; false: it knows no such instance. Errors: why it refused.
  Task<bool> Terminate(std::string id);

 private:
  using Waiting = std::map<std::string, std::vector<std::shared_ptr<OneShot<bool>>>>;  // by instance

  Task<> SendLater();
  Task<> Send(Waiting batch);
  static void Answer(const Waiting& batch, const std::string& id, bool is_known);

  Ec2& ec2_;
  TaskGroup& tasks_;
  Waiting next_;
};

// The ids of `batch` that the text of an error names.
std::vector<std::string> NamedIn(const std::string& message, const std::vector<std::string>& batch);

}  // namespace nodepool::drivers::aws
