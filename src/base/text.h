#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace nodepool {

// The candidate nearest in spelling to `word`, or none when all are too far to be a plausible typo
// (more than a third of the word's letters differ; two that are swapped count as one).
std::optional<std::string> NearestSpelling(std::string_view word, const std::vector<std::string>& candidates);

// `text` split at each `separator`; an empty text gives no part.
std::vector<std::string> Split(std::string_view text, char separator);

// `text` without the `blanks` at its ends.
std::string_view Trim(std::string_view text, std::string_view blanks = " \t\r\n\f\v");

// For ASCII only; other bytes are unchanged.
std::string Lower(std::string_view text);
std::string Upper(std::string_view text);

std::string Join(const std::vector<std::string>& parts, std::string_view separator);

bool IsValidUtf8(std::string_view bytes);

// `text` with what a terminal or a reader would obey instead of seeing it: C0 controls, DEL and bytes that
// are not UTF-8 as \x1b, C1 controls, line separators and controls of the writing direction as \u202e. The
// characters in `kept` stay.
std::string Visible(std::string_view text, std::string_view kept = {});

// The same of at most `limit` bytes, for use in a log line or an error message about input from outside;
// "..." is appended if there are more.
std::string Excerpt(std::string_view text, std::size_t limit = 80, std::string_view kept = {});

}  // namespace nodepool
