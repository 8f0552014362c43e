#pragma once

#include <string>

#include "model/component.h"
#include "model/node.h"
#include "model/node_request.h"
#include "model/provider_pause.h"
#include "store/records.h"

namespace nodepool::web {

// What a change means, in a sentence for operators; empty: nothing that they want to read. `before` is null
// for a record that is new, `after` for one that is gone; never both.

std::string TextOfChange(const NodeId& id, const Node* before, const Node* after);
// `waited` is the time since the request was made. Of requests for min-ready nodes nothing: their nodes show
// what they get, and a shortage is a change of its label.
std::string TextOfChange(const RequestId& id, const NodeRequest* before, const NodeRequest* after,
                         Duration waited);
std::string TextOfChange(const store::BuildKey& id, const ImageBuild* before, const ImageBuild* after);
std::string TextOfChange(const store::UploadKey& id, const ImageUpload* before, const ImageUpload* after);
// Of a launcher or builder.
std::string TextOfChange(const Component* before, const Component* after);
// Of a launcher's provider.
std::string TextOfChange(const std::string& hostname, const ProviderName& name, const ProviderReport* before,
                         const ProviderReport* after);
// Of a label's stock of min-ready nodes: once for each cause, whatever its figures.
std::string TextOfChange(const LabelName& name, const ShortStock* before, const ShortStock* after);
// Of a breaker: that it opens, is tested in vain, or closes.
std::string TextOfChange(const BreakerKey& key, const Breaker* before, const Breaker* after);
// Of a provider's switch.
std::string TextOfChange(const ProviderName& name, const ProviderPause* before, const ProviderPause* after);

}  // namespace nodepool::web
