#pragma once

#include <memory>
#include <string>

namespace nodepool::bench {

// Apache's C client, used as its asynchronous interface wants it: as many
// operations under way as `window` allows, completions on its own thread.
class CClient {
 public:
  explicit CClient(const std::string& address);  // "127.0.0.1:2181"; waits for the session
  ~CClient();
  CClient(const CClient&) = delete;
  CClient& operator=(const CClient&) = delete;

  // Each does `count` operations on "<root>/<i>" and returns when all are answered.
  // Throws std::runtime_error when one fails.
  void CreateAll(const std::string& root, int count, int window, const std::string& data);
  void SetAll(const std::string& root, int count, int window, const std::string& data);
  void GetAll(const std::string& root, int count, int window);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace nodepool::bench
