// What a running mount tells about itself: JSON for `agentfs stat`, Prometheus text for scrapers.
// Thread-safe as Bridge is.
#pragma once

#include "base/json.h"
#include "fs/client/bridge.h"

#include <string>

namespace fs {

struct MountSpec;

const char* name_of(Durability durability);
base::Result<Durability> durability_named(std::string_view name);

base::Json mount_status(Bridge& bridge, const MountSpec& spec);
std::string prometheus_text(Bridge& bridge, const MountSpec& spec);

}  // namespace fs
