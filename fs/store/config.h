// Where the parts of a store lie, when they are not all in its folder. A folder of a cluster holds
// DIR/store.json, which only its owner can read, since the engine's URL may hold a password:
//
//   {"engine": "postgres://... or @FILE", "blobs": "/folder or s3://bucket/prefix?..."}
//   (fs/blob/s3_url.h)
//
// A folder without it is a store by itself (fs/store/store.h). Thread-safe.
#pragma once

#include "base/disk.h"
#include "base/result.h"
#include "fs/blob/blob.h"
#include "fs/engine/engine.h"

#include <memory>
#include <optional>
#include <string>

namespace fs {

struct StoreConfig {
  std::string engine;  // a URL, or @FILE that holds one
  std::string blobs;   // "": packs lie in the folder
};
// nullopt for a folder that is a store by itself.
base::Result<std::optional<StoreConfig>> load_config(const std::string& folder);
base::Status save_config(const std::string& folder, const StoreConfig& config);

base::Result<std::unique_ptr<Engine>> open_engine(const StoreConfig& config, bool create);
// Packs: in `folder`/packs when `blobs` is "". `disk` outlives what it gives.
base::Result<std::unique_ptr<BlobStore>> open_blobs(base::Disk& disk, const std::string& folder,
                                                    const std::string& blobs);
// The engine as people may see it, without a password.
std::string engine_name(const StoreConfig& config);

}  // namespace fs
