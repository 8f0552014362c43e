#pragma once

#include "drivers/fake/fake_driver.h"
#include "launcher/launcher_fixture_for_test.h"

namespace nodepool::launcher {

// Launchers of the simulated cloud's driver, with a configuration read from YAML.
class CloudTest : public LauncherFixture {
 protected:
  // A provider with one pool, `main`. Each text is added to its mapping in YAML, e.g.
  // "max-servers: 2, max-cores: 8".
  struct Cloud {
    std::string name = "cloud";
    std::vector<std::string> labels = {"small"};
    std::string provider;
    std::string pool;
    std::string label;  // settings of each label
    std::string image = "cloud-image: image";
    std::string simulation;
    std::string more_images;  // further entries, each after a comma
    std::string more_pools;
  };

  void SetUp() override {
    LauncherFixture::SetUp();
    auto driver = std::make_unique<drivers::FakeDriver>();
    clouds_ = &driver->clouds();
    drivers_.Add(std::move(driver));
  }

  void AddCloud(Cloud cloud) {
    std::string labels;
    for (const std::string& label : cloud.labels) {
      labels += Mapping({"name: " + label, cloud.image, "min-ram: 8192", cloud.label}) + ", ";
      if (label_settings_.try_emplace(label).second) order_.push_back(label);
    }
    std::string pool = Mapping({"name: main", "labels: [" + labels + "]", cloud.pool});
    providers_ += "- " +
                  Mapping({"name: " + cloud.name, "driver: fake", "cloud: simulated",
                           "cloud-images: [{name: image, image-name: Fake Precise}" + cloud.more_images + "]",
                           "pools: [" + pool + cloud.more_pools + "]",
                           "simulation: " + Mapping({cloud.simulation}), cloud.provider}) +
                  "\n";
  }
  void AddCloud() { AddCloud(Cloud()); }
  // A provider with one label, given in full, and an image for it.
  void AddProvider(std::string name, std::string label, std::string offer,
                   std::string image = "{name: image, image-name: Fake Precise}",
                   std::string simulation = "") {
    if (label_settings_.try_emplace(label).second) order_.push_back(label);
    providers_ +=
        "- " +
        Mapping({"name: " + name, "driver: fake", "cloud: simulated", "cloud-images: [" + image + "]",
                 "pools: [{name: main, labels: [" + offer + "]}]", "simulation: " + Mapping({simulation})}) +
        "\n";
  }
  // No provider is configured from now on.
  void RemoveClouds() { providers_.clear(); }
  // Settings of a top-level label, e.g. "min-ready: 1".
  void SetLabel(const std::string& label, std::string settings) {
    if (!label_settings_.contains(label)) order_.push_back(label);
    label_settings_[label] = std::move(settings);
  }

  void Load() {
    std::string text = top_ + "\nlabels:\n";
    for (const std::string& label : order_)
      text += "- " + Mapping({"name: " + label, label_settings_[label]}) + "\n";
    LoadYaml(text + "providers:\n" + providers_);
  }
  Running& StartLauncher(std::string hostname = "np01") override {
    Load();
    return LauncherFixture::StartLauncher(std::move(hostname));
  }

  // Call after a launcher has started.
  drivers::FakeCloud& cloud(std::string provider = "cloud") { return *clouds_->Find(ProviderName(provider)); }
  // Changes the cloud without notice to the launcher.
  void Change(std::function<void(drivers::FakeSimulation&)> change, std::string provider = "cloud") {
    drivers::FakeSimulation settings = cloud(provider).settings();
    change(settings);
    cloud(provider).Configure(std::move(settings));
  }
  // Adds the records of an image uploaded to a provider; returns the upload's path.
  std::string AddUpload(std::string image, std::string provider = "cloud",
                        std::string number = "0000000001") {
    drivers::FakeCloud& cloud = clouds_->Of(ProviderName(provider), time_.loop(), random_, {});
    std::string build = "0123456789abcdef0123456789abcdef";
    ImageUpload upload;
    upload.state = ImageState::kReady;
    upload.state_time = time_.loop().Now();
    upload.external_id = cloud.UploadImage(
        image,
        {{"nodepool_provider_name", provider}, {"nodepool_build_id", build}, {"nodepool_upload_id", number}});
    ImageBuild ready;
    ready.state = ImageState::kReady;
    ready.state_time = upload.state_time;
    std::string path = "/nodepool/images/" + image + "/builds/" + build;
    Put(path, ToJson(ready));
    path += "/providers/" + provider + "/images/" + number;
    Put(path, ToJson(upload));
    return path;
  }

  std::string top_;  // top-level YAML

 private:
  static std::string Mapping(std::vector<std::string> entries) {
    std::string text;
    for (const std::string& entry : entries) {
      if (!entry.empty()) text += (text.empty() ? "" : ", ") + entry;
    }
    return "{" + text + "}";
  }

  drivers::FakeClouds* clouds_ = nullptr;
  std::string providers_;
  std::vector<std::string> order_;
  std::map<std::string, std::string> label_settings_;
};

}  // namespace nodepool::launcher
