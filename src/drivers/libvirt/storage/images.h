#pragma once

#include <string>
#include <vector>

#include "driver/cloud/adapter.h"
#include "drivers/libvirt/host/host.h"
#include "drivers/libvirt/placement/site.h"

namespace nodepool::drivers::libvirt {

// Sends the builder's file to every usable host, two at a time, into volumes of one name, which it returns;
// of hosts that share their storage to one. A host that is lost meanwhile is left out, unless all are. When
// it fails or is cancelled, the volumes are removed. Error(kRetry): no host can be used.
Task<std::string> UploadImage(Site& site, driver::ImageUploadParameters upload);

// Deletes the uploaded volume on every host. Error(kRetry): something is backed by it, which libvirt would
// not notice, or a host cannot be used now. What this driver has not uploaded is left alone.
Task<> DeleteImage(Hosts& hosts, std::string volume);

// The same on one host.
Task<> DeleteImageOn(Host& host, std::string volume);

// Uploads of any Nodepool on the usable hosts, each name once.
Task<std::vector<driver::ListedImage>> ListUploads(Hosts& hosts);

// Ends when the host has the uploaded image, which is copied from another one where it is missing.
// Error(kNotFound): no host that can be used has it.
Task<> EnsureUpload(Site& site, Host& target, std::string image);

// Whether what one host has in its storage pool is in the other one's, too.
bool ShareStorage(const Host& one, const Host& other);

// `hosts` without those that share the storage of an earlier one.
std::vector<Host*> OneOfEachStorage(const std::vector<Host*>& hosts);

}  // namespace nodepool::drivers::libvirt
