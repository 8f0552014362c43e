#pragma once

#include <boost/json/object.hpp>

namespace nodepool::drivers::kubernetes {

// The command of a pod that the driver makes without a custom spec: it sleeps, and ignores SIGTERM.
void SetDefaultCommand(boost::json::object& container);
// Whether the pod with this spec runs it.
bool RunsDefaultCommand(const boost::json::object& spec);

}  // namespace nodepool::drivers::kubernetes
