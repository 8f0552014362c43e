#include <CLI/CLI.hpp>
#include <csignal>
#include <iostream>

#include "base/log/logging.h"
#include "base/small_file.h"
#include "main/builtin_drivers.h"
#include "main/check_driver.h"

namespace {

void ListDrivers() {
  for (const std::string& name : nodepool::DriverNames()) std::cout << name << "\n";
  throw CLI::Success();
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  CLI::App app("Checks that a driver's adapter does what Nodepool expects of it, against its real cloud.",
               "nodepool-driver-test");
  nodepool::DriverCheck check;
  app.add_option("-c", check.config_path, "configuration file")->required();
  app.add_option("--provider", check.provider, "one of its providers; no launcher may be using it")
      ->required();
  app.add_option("--label", check.label, "one of its labels; default the first");
  app.add_option("--drivers-dir", check.drivers_dirs, "directory of drivers; may be repeated")
      ->allow_extra_args(false);
  app.add_option("--cancellations", check.most_cancellations,
                 "how often a creation and a deletion are cancelled half way; 0: at every await")
      ->capture_default_str();
  app.add_flag("-d", check.is_debug, "log at DEBUG level");
  app.add_flag_callback("--list-drivers", &ListDrivers,
                        "print the names of Nodepool's drivers, and nothing else");
  CLI11_PARSE(app, argc, argv);
  nodepool::log::ToStderr();
  if (check.is_debug) nodepool::log::SetLevel("nodepool", nodepool::log::Level::kDebug);
  nodepool::log::SetLevel("nodepool.zk", nodepool::log::Level::kCritical);
  nodepool::CheckedOutput output(std::cout);
  try {
    return output.Finish("nodepool-driver-test", nodepool::CheckDriver(check), std::cerr);
  } catch (const std::exception& error) {
    std::cerr << "nodepool-driver-test: " << error.what() << "\n";
    return 2;
  }
}
