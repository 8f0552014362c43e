#pragma once

#include <cstddef>
#include <ostream>
#include <streambuf>
#include <string>
#include <string_view>

namespace nodepool {

// The content of a file with a token, a key or settings. Blocks for the time of reading. Error(kInvalid),
// which names the file: it cannot be read, is empty, or has `limit` bytes or more.
std::string ReadSmallFile(const std::string& path, std::size_t limit = 4 << 20);

// The same without the blanks at its ends, for a file with one text. Error(kInvalid): it has nothing else.
std::string ReadTextFile(const std::string& path);

// At most the last `size` bytes of a regular file, of a longer one beginning with a whole line. Blocks.
// Throws Error(kFail) with the path where it cannot be read; symbolic links and what is no regular file are
// refused.
std::string ReadFileEnd(const std::string& path, std::size_t size);

// Remembers why a stream could not write, for programs whose output is their result: what is still buffered
// in the end is lost without a word otherwise. In force while it exists; the stream outlives it.
class CheckedOutput {
 public:
  explicit CheckedOutput(std::ostream& out);
  ~CheckedOutput();
  CheckedOutput(const CheckedOutput&) = delete;
  CheckedOutput& operator=(const CheckedOutput&) = delete;

  // To be called after the last output: the exit status of a program that would end with `status`. When
  // output was lost, says why on `err`, as a message of `program`, and turns 0 into 1; but not when its
  // reader has gone, which wanted no more of it.
  int Finish(std::string_view program, int status, std::ostream& err);

 private:
  // Passes everything on to the stream's own buffer.
  class Relay : public std::streambuf {
   public:
    explicit Relay(std::streambuf& inner) : inner_(inner) {}
    std::streambuf& inner() { return inner_; }
    int fault() const { return fault_; }  // an errno; 0: everything was written so far

   protected:
    int_type overflow(int_type c) override;
    std::streamsize xsputn(const char* text, std::streamsize size) override;
    int sync() override;

   private:
    // Notes why a call failed, if it did.
    bool Note(bool is_good);

    std::streambuf& inner_;
    int fault_ = 0;
  };

  std::ostream& out_;
  Relay relay_;
};

}  // namespace nodepool
