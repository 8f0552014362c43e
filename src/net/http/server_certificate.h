#pragma once

#include <boost/asio/ssl/context.hpp>
#include <memory>
#include <optional>
#include <string>

#include "async/file_watch.h"
#include "async/loop.h"
#include "async/task.h"
#include "async/wake_loop.h"
#include "base/log/logging.h"
#include "base/tls_files.h"

namespace nodepool::net {

// A web server's certificate and key, loaded again when their files change (http-tls.md 2). New connections
// get the new certificate; those that are open keep the one that they began with.
class ServerCertificate {
 public:
  // Loads the files. Error(kInvalid) names `setting`, the file and the reason. `loop` outlives it.
  ServerCertificate(Loop& loop, CertificateFiles files, std::string setting, log::Logger logger);

  // For the next connection.
  boost::asio::ssl::context& context() { return *loaded_.context; }
  // How long the loop spends on a signature with the key, measured when it was loaded.
  Duration signing_time() const { return loaded_.signing_time; }

  // Follows the files and warns of the certificate's end, until it is cancelled.
  Task<> Follow() { return checks_.Run(); }

 private:
  struct Loaded {
    std::unique_ptr<boost::asio::ssl::context> context;
    std::string identity;  // of the files
    WallTime begins;
    WallTime ends;
    Duration signing_time{};
  };

  std::string Identity() const;
  Loaded Load() const;
  SteadyTime Check();
  void Report(const std::string& fault);
  void WarnOfDates();

  Loop& loop_;
  const CertificateFiles files_;
  const std::string setting_;
  log::Logger logger_;
  Loaded loaded_;
  WakeLoop checks_;
  FileWatch watch_;
  std::optional<SteadyTime> faulty_since_;  // since then the files cannot be used; none: they can
  std::string reported_;                    // the last fault that was logged
  std::optional<SteadyTime> warned_at_;     // when the last warning of its dates was logged
};

}  // namespace nodepool::net
