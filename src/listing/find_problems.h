#pragma once

#include "listing/problem.h"
#include "listing/status_records.h"

namespace nodepool::listing {

// Requests that wait for longer are a problem.
inline constexpr Duration kLongWait = std::chrono::minutes(5);

// What an operator should check, the most urgent first (http.md 1.10); empty if there are no problems. A pure
// function of records and configuration. Its work grows with providers, labels, images and waiting requests,
// and with the nodes that are being deleted or that nobody serves, not with all nodes.
Problems FindProblems(const StatusRecords& records);

// Its parts, a file each; all append.
void FindDaemonProblems(Problems& out, const StatusRecords& records);
void FindProviderProblems(Problems& out, const StatusRecords& records);
void FindLabelProblems(Problems& out, const StatusRecords& records);
void FindImageProblems(Problems& out, const StatusRecords& records);
void FindRequestProblems(Problems& out, const StatusRecords& records);
void FindRunnerProblems(Problems& out, const StatusRecords& records);

// "1 node", "2 nodes".
std::string Counted(std::size_t count, std::string_view noun);
std::string InOneLine(std::string text);
bool Runs(const StatusRecords& records, ComponentKind kind);
// Where the launcher runs that has this id; empty: the id is not one of ours.
std::string_view HostOf(std::string_view launcher_id);

}  // namespace nodepool::listing
