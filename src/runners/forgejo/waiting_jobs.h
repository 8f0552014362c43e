#pragma once

#include <boost/json/value.hpp>
#include <string>
#include <vector>

#include "runners/polled/polled_sets.h"

namespace nodepool::runners::forgejo {

// Reading what Forgejo says about jobs (runners.md 4.1).

// The jobs of an answer, which is a list or null; entries without id and handle, and what is more than 1000,
// are left out. `repository` is theirs where the address is that of one; else they are named by its number.
std::vector<WaitingJob> ReadWaitingJobs(const boost::json::value& answer, const std::string& site,
                                        const std::string& repository);

// What is wrong with a server of this version, "15.0.0+gitea-1.22.0", and what is needed; empty: nothing.
std::string FaultOfVersion(const std::string& version);

}  // namespace nodepool::runners::forgejo
