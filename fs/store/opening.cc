// Where stores come from: made, joined by one more server, opened with their key.
#include "base/hash.h"
#include "base/random.h"
#include "fs/engine/sqlite_engine.h"
#include "fs/store/config.h"
#include "fs/store/store_impl.h"

#include <algorithm>
#include <cstdlib>

namespace fs {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::Status;

namespace {

void fill_defaults(StoreOptions& options) {
  if (options.disk == nullptr) options.disk = &base::posix_disk();
  if (options.clock == nullptr) options.clock = &base::system_clock();
}

// The random name of a folder that is one of several under one engine, made when it is first used.
Result<std::string> place_of(base::Disk& disk, const std::string& folder) {
  std::string path = folder + "/place";
  constexpr size_t length = 32;
  auto file = TRY(disk.open(path, {.create = true}));
  std::string name(length, '\0');
  size_t got = TRY(file->read_at(0, {reinterpret_cast<u8*>(name.data()), name.size()}));
  if (got == length) return name;
  u8 random[length / 2];
  base::secure_random_bytes(random);
  name = base::to_hex(random);
  TRY(file->write_at(0, base::as_bytes(name)));
  TRY(file->sync());
  TRY(disk.sync_directory(folder));
  return name;
}

Status make_folders(base::Disk& disk, const std::string& folder, bool cluster) {
  std::vector<std::string> folders{folder, folder + "/log", folder + "/packs"};
  if (cluster) folders.push_back(folder + "/tails");
  for (const std::string& path : folders) {
    Status made = disk.make_directory(path);
    if (!made.ok() && made.error().code() != ErrorCode::kExists) return made;
  }
  return disk.sync_directory(folder);
}

// A folder that another store uses already must not become a part of this one.
Status check_unused(base::Disk& disk, const std::string& folder) {
  for (const char* sign : {"/agentfs.db", "/store.json"}) {
    if (TRY(disk.exists(folder + sign))) {
      return Error(ErrorCode::kExists,
                   folder + " belongs to a store already; choose another folder");
    }
  }
  return {};
}

const char* key_path() {
  const char* path = std::getenv("AGENTFS_KEY_FILE");
  return path == nullptr ? "" : path;
}

// The key that opens an encrypted store.
Result<UserKey> user_key(const StoreOptions& options, const std::string& folder) {
  if (options.key != nullptr) return *options.key;
  if (*key_path() != '\0') return read_key_file(key_path());
  return Error(ErrorCode::kPermission,
               folder + " is encrypted; give --key-file FILE or set AGENTFS_KEY_FILE");
}

// Null for a store that is not encrypted.
Result<SealPointer> seal_of(const MetaRow& meta, const StoreOptions& options,
                            const std::string& folder) {
  if (meta.wrapped_key.empty()) {
    if (options.key == nullptr && *key_path() == '\0') return SealPointer();
    // Whoever gave a key expects that nothing is written without it.
    return Error(ErrorCode::kPermission,
                 folder + " is not encrypted; leave --key-file and AGENTFS_KEY_FILE out");
  }
  DataKey key = TRY(unwrap_key(meta.wrapped_key, TRY(user_key(options, folder))));
  return SealPointer(std::make_shared<const StoreSeal>(key));
}

Error no_store(const std::string& where) {
  return Error(ErrorCode::kNotFound,
               where + " holds no store; make one with agentfs format " + where);
}

// The engine that a folder names.
struct NamedEngine {
  std::unique_ptr<Engine> engine;
  std::optional<StoreConfig> config;  // of a cluster
};
Result<NamedEngine> engine_of(base::Disk& disk, const std::string& folder) {
  NamedEngine named;
  named.config = TRY(load_config(folder));
  if (named.config) {
    named.engine = TRY(open_engine(*named.config, false));
    return named;
  }
  if (!TRY(disk.exists(folder + "/agentfs.db"))) return no_store(folder);
  named.engine = TRY(open_sqlite_engine(folder + "/agentfs.db"));
  return named;
}

// Whether a new store can have its packs there: found out before anything is made.
Status check_blobs(base::Disk& disk, const std::string& folder, const std::string& blobs,
                   bool cluster) {
  if (!cluster) {
    return Error(ErrorCode::kInvalidArgument,
                 "--blobs needs an engine that other servers reach, too: add --engine URL");
  }
  // Numbers of packs begin anew: an older store's packs would be taken for ours.
  auto there = TRY(TRY(open_blobs(disk, folder, blobs))->list(""));
  bool used = std::any_of(there.begin(), there.end(),
                          [](const std::string& name) { return name.ends_with(".pack"); });
  if (!used) return {};
  return Error(ErrorCode::kExists,
               blobs + " holds packs of another store; choose another folder or prefix");
}

}  // namespace

Status Store::format(const std::string& folder, const StoreOptions& given) {
  StoreOptions options = given;
  fill_defaults(options);
  base::Disk& disk = *options.disk;
  StoreConfig config{options.engine_url, options.blobs};
  bool cluster = !config.engine.empty();
  if (cluster) TRY(check_unused(disk, folder));
  if (!config.blobs.empty()) TRY(check_blobs(disk, folder, config.blobs, cluster));
  TRY(make_folders(disk, folder, cluster || options.log_in_engine));
  std::unique_ptr<Engine> owned;
  std::string where = cluster ? engine_name(config) : folder;
  if (cluster) {
    owned = TRY(open_engine(config, true));
  } else if (options.engine == nullptr) {
    owned = TRY(open_sqlite_engine(folder + "/agentfs.db"));
  }
  Engine& engine = owned == nullptr ? *options.engine : *owned;
  MetaRow meta;
  meta.blobs = config.blobs;
  base::secure_random_bytes(meta.key);
  if (options.encrypt) {
    meta.wrapped_key = wrap_key(random_data_key(), TRY(user_key(options, folder)));
  }
  Status done = commit_surely(engine, {{std::string(kMetaKey), encode_row(meta), 0}});
  if (!done.ok() && done.error().code() == ErrorCode::kConflict) {
    return Error(ErrorCode::kExists, where + " holds a store already; " +
                                         (cluster ? "serve it, or use another database"
                                                  : "mount it, or remove it first"));
  }
  if (done.ok() && cluster) return save_config(folder, config);
  return done;
}

Status Store::join(const std::string& folder, const StoreOptions& given) {
  StoreOptions options = given;
  fill_defaults(options);
  StoreConfig config{options.engine_url, options.blobs};
  auto engine = TRY(open_engine(config, false));
  Row row = TRY(engine->get(kMetaKey));
  if (row.version == 0) return no_store(engine_name(config));
  auto meta = decode_meta_row(row.value);
  if (!meta) return damaged_row(kMetaKey);
  if (config.blobs.empty()) config.blobs = meta->blobs;
  if (config.blobs.empty()) {
    return Error(ErrorCode::kUnsupported,
                 "the packs of " + engine_name(config) +
                     " lie in the folder of one server; format it with --blobs for several");
  }
  TRY(check_unused(*options.disk, folder));
  TRY(make_folders(*options.disk, folder, true));
  return save_config(folder, config);
}

Result<std::unique_ptr<Store>> Store::open(const std::string& folder, StoreOptions options) {
  fill_defaults(options);
  std::unique_ptr<Engine> owned;
  std::string where;
  if (options.engine == nullptr) {
    NamedEngine named = TRY(engine_of(*options.disk, folder));
    owned = std::move(named.engine);
    options.engine = owned.get();
    if (named.config) options.log_in_engine = true;
    if (named.config) where = named.config->blobs;
  }
  Row meta = TRY(options.engine->get(kMetaKey));
  if (meta.version == 0) return no_store(folder);
  auto decoded = decode_meta_row(meta.value);
  if (!decoded) return damaged_row(kMetaKey);
  std::string place = options.log_in_engine ? TRY(place_of(*options.disk, folder)) : "";
  SealPointer seal = TRY(seal_of(*decoded, options, folder));
  auto blobs = TRY(open_blobs(*options.disk, folder, where));
  StoreImpl::Parts parts{folder, std::move(blobs), place, std::move(owned), decoded->key, seal};
  auto store = std::make_unique<StoreImpl>(std::move(parts), options);
  TRY(store->packs().reload());
  return std::unique_ptr<Store>(std::move(store));
}

Status Store::rekey(const std::string& folder, StoreOptions options, const UserKey& fresh) {
  fill_defaults(options);
  std::unique_ptr<Engine> owned;
  if (options.engine == nullptr) {
    owned = TRY(engine_of(*options.disk, folder)).engine;
    options.engine = owned.get();
  }
  for (;;) {
    Row row = TRY(options.engine->get(kMetaKey));
    if (row.version == 0) return no_store(folder);
    auto meta = decode_meta_row(row.value);
    if (!meta) return damaged_row(kMetaKey);
    if (meta->wrapped_key.empty()) {
      return Error(ErrorCode::kUnsupported,
                   folder +
                       " is not encrypted; copy its files to one made with agentfs format "
                       "--encrypt");
    }
    DataKey key = TRY(unwrap_key(meta->wrapped_key, TRY(user_key(options, folder))));
    meta->wrapped_key = wrap_key(key, fresh);
    Status done =
        commit_surely(*options.engine, {{std::string(kMetaKey), encode_row(*meta), row.version}});
    // Numbers are taken from the same row; then we look again.
    if (done.ok() || done.error().code() != ErrorCode::kConflict) return done;
  }
}

}  // namespace fs
