#pragma once

#include <spdlog/sinks/sink.h>

#include <memory>
#include <string>
#include <string_view>

#include "base/log/log_setup.h"

namespace nodepool::log {

struct Record;

// A record in the native protocol of journald: a line KEY=VALUE for each field, with
// `message` as MESSAGE and what the record is about in fields of their own.
std::string JournalEntry(const Record& record, std::string_view message, std::string_view identifier);

// Takes whole entries, unlike other sinks. Nothing needs to listen; what is not taken
// within a moment is lost.
std::shared_ptr<spdlog::sinks::sink> OpenJournal(const Journal& settings);

// Whether `descriptor` is the stream to the journal that `stream` names, the value of
// JOURNAL_STREAM: "DEVICE:INODE"; null: there is none.
bool IsJournalStream(const char* stream, int descriptor);

// The same by the environment.
bool IsJournal(int descriptor);

// To journald, with what is about requests and nodes as fields. False, and nothing is
// changed, when it does not listen.
bool ToJournal();

}  // namespace nodepool::log
