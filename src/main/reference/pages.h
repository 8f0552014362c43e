#pragma once

#include <string>
#include <vector>

#include "driver/driver.h"

namespace nodepool::reference {

// The pages of reference, in Markdown, that are made from what the programs declare: settings, metrics and
// routes. Their links lead to the other documents as these are installed.

// A page and its place below the folder of documents.
struct Page {
  std::string path;  // reference/api.md
  std::string text;
};

// Every setting of nodepool.yaml, of the secure file and of the provider sections of `drivers` and of all
// other known drivers.
std::string ConfigurationPage(const driver::Registry& drivers);

// What launchers send to statsd and offer to Prometheus.
std::string LauncherMetricsPage();

// What builders send to statsd and offer to Prometheus.
std::string BuilderMetricsPage();

// What nodepool-runners sends to statsd.
std::string RunnersMetricsPage();

// The routes of a launcher's web server below /api/, with parameters and fields. No launcher is started.
std::string ApiPage(driver::Registry& drivers);

// All of these.
std::vector<Page> AllPages(driver::Registry& drivers);

}  // namespace nodepool::reference
