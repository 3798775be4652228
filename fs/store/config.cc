#include "fs/store/config.h"

#include "base/files.h"
#include "base/json.h"
#include "fs/blob/cached_blobs.h"
#include "fs/blob/folder_blobs.h"
#include "fs/blob/s3_blobs.h"
#include "fs/engine/postgres_connection.h"
#include "fs/engine/postgres_engine.h"

#include <sys/stat.h>

namespace fs {

using base::Error;
using base::ErrorCode;
using base::Json;
using base::Result;
using base::Status;

namespace {

std::string path_in(const std::string& folder) {
  return folder + "/store.json";
}

Result<std::string> url_of(const StoreConfig& config) {
  std::string url = config.engine;
  if (url.starts_with('@')) url = TRY(base::read_file(url.substr(1)));
  while (!url.empty() && std::isspace(static_cast<unsigned char>(url.back()))) url.pop_back();
  if (is_postgres_url(url)) return url;
  return Error(ErrorCode::kInvalidArgument,
               "the engine's URL is none that we know; write postgres://USER@HOST:PORT/DATABASE, "
               "or @FILE for a file that holds it");
}

}  // namespace

Result<std::optional<StoreConfig>> load_config(const std::string& folder) {
  std::string path = path_in(folder);
  if (!base::file_exists(path)) return std::optional<StoreConfig>();
  auto json = Json::parse(TRY(base::read_file(path)));
  if (!json.ok() || !json->is_object()) {
    return Error(ErrorCode::kCorruption,
                 path + " is damaged; remove it and run agentfs serve with --engine once");
  }
  return std::optional(StoreConfig{(*json)["engine"].as_string(), (*json)["blobs"].as_string()});
}

Status save_config(const std::string& folder, const StoreConfig& config) {
  Json json = Json::object({{"engine", config.engine}, {"blobs", config.blobs}});
  mode_t before = ::umask(0077);
  Status saved = base::replace_file(path_in(folder), json.dump_pretty() + "\n");
  ::umask(before);
  return saved;
}

Result<std::unique_ptr<Engine>> open_engine(const StoreConfig& config, bool create) {
  PostgresOptions options;
  options.create = create;
  return open_postgres_engine(TRY(url_of(config)), options);
}

Result<std::unique_ptr<BlobStore>> open_blobs(base::Disk& disk, const std::string& folder,
                                              const std::string& blobs) {
  if (!is_s3_url(blobs)) {
    if (blobs.find("://") != blobs.npos) {
      return Error(ErrorCode::kInvalidArgument,
                   "'" + blobs + "' is no place for packs; write a folder or s3://BUCKET/PREFIX");
    }
    std::string packs = blobs.empty() ? folder + "/packs" : blobs;
    return std::unique_ptr<BlobStore>(std::make_unique<FolderBlobs>(disk, packs));
  }
  S3Url url = TRY(parse_s3_url(blobs));
  u64 cache_bytes = url.cache_bytes;
  S3Credentials credentials = TRY(find_s3_credentials(url));
  std::unique_ptr<BlobStore> store =
      std::make_unique<S3Blobs>(std::move(url), std::move(credentials));
  if (cache_bytes == 0) return store;
  return std::unique_ptr<BlobStore>(
      std::make_unique<CachedBlobs>(std::move(store), folder + "/cache", cache_bytes));
}

std::string engine_name(const StoreConfig& config) {
  auto url = url_of(config);
  return url.ok() ? without_password(*url) : config.engine;
}

}  // namespace fs
