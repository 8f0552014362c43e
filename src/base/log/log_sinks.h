#pragma once

#include <spdlog/sinks/sink.h>

#include <memory>
#include <string>
#include <string_view>

#include "base/log/log_setup.h"

namespace nodepool::log {

struct Record;

// A record in the native protocol of journald: a line KEY=VALUE for each field, with `message` as
// MESSAGE and the record's ids as fields of their own.
std::string JournalEntry(const Record& record, std::string_view message, std::string_view identifier);

// A sink that sends whole entries, unlike other sinks. It works without a listener; an entry that
// is not received within a moment is lost.
std::shared_ptr<spdlog::sinks::sink> OpenJournal(const Journal& settings);

// Whether `descriptor` is the stream to the journal that `stream` names, the value of
// JOURNAL_STREAM: "DEVICE:INODE"; null: there is none.
bool IsJournalStream(const char* stream, int descriptor);

// The same, with JOURNAL_STREAM from the environment.
bool IsJournal(int descriptor);

// Logs to journald, with the ids of requests and nodes as fields. False when journald does not
// listen; nothing is changed then.
bool ToJournal();

// What the handlers write to. They take lines as they are, and end each. Called under the
// lock of the log; may throw spdlog_ex when the system refuses.

// Error(kInvalid) when it cannot be opened.
std::shared_ptr<spdlog::sinks::sink> OpenSink(const Handler& handler);

// Reopens a file; does nothing for other sinks. Throws spdlog_ex.
void ReopenFile(spdlog::sinks::sink& sink);

}  // namespace nodepool::log
