// The columns that each pragma answers with.
#include "db/engine/command.h"

namespace db {

std::vector<std::string> pragma_columns(const sql::PragmaStatement& pragma) {
  std::string name = lower_ascii(pragma.name.text);
  if (name == "table_info") return {"cid", "name", "type", "notnull", "dflt_value", "pk"};
  if (name == "table_xinfo")
    return {"cid", "name", "type", "notnull", "dflt_value", "pk", "hidden"};
  if (name == "table_list") return {"schema", "name", "type", "ncol", "wr", "strict"};
  if (name == "index_list") return {"seq", "name", "unique", "origin", "partial"};
  if (name == "index_info") return {"seqno", "cid", "name"};
  if (name == "index_xinfo") return {"seqno", "cid", "name", "desc", "coll", "key"};
  if (name == "foreign_key_list")
    return {"id", "seq", "table", "from", "to", "on_update", "on_delete", "match"};
  if (name == "foreign_key_check") return {"table", "rowid", "parent", "fkid"};
  if (name == "wal_checkpoint") return {"busy", "log", "checkpointed"};
  if (name == "database_list") return {"seq", "name", "file"};
  if (name == "collation_list") return {"seq", "name"};
  if (name == "function_list") return {"name", "builtin", "type", "enc", "narg", "flags"};
  if (name == "module_list") return {"name"};
  if (name == "busy_timeout") return {"timeout"};
  static constexpr const char* kSilentWhenSet[] = {"foreign_keys",
                                                   "recursive_triggers",
                                                   "synchronous",
                                                   "cache_size",
                                                   "user_version",
                                                   "application_id",
                                                   "schema_version",
                                                   "page_size",
                                                   "auto_vacuum",
                                                   "temp_store",
                                                   "encoding",
                                                   "count_changes",
                                                   "full_column_names",
                                                   "short_column_names",
                                                   "reverse_unordered_selects",
                                                   "ignore_check_constraints",
                                                   "query_only",
                                                   "automatic_index",
                                                   "fleet_executor",
                                                   "cell_size_check",
                                                   "writable_schema",
                                                   "legacy_alter_table",
                                                   "trusted_schema",
                                                   "legacy_file_format",
                                                   "defer_foreign_keys",
                                                   "default_cache_size"};
  for (const char* silent : kSilentWhenSet) {
    if (name == silent && pragma.has_value) return {};
  }
  static constexpr const char* kNever[] = {"incremental_vacuum", "optimize", "shrink_memory",
                                           "case_sensitive_like"};
  for (const char* never : kNever) {
    if (name == never) return {};
  }
  static constexpr const char* kOthers[] = {
      "integrity_check",    "quick_check",        "journal_mode",
      "freelist_count",     "page_count",         "data_version",
      "compile_options",    "locking_mode",       "max_page_count",
      "journal_size_limit", "wal_autocheckpoint", "secure_delete",
      "analysis_limit",     "mmap_size",          "threads",
      "soft_heap_limit",    "hard_heap_limit"};
  for (const char* other : kOthers) {
    if (name == other) return {name};
  }
  for (const char* silent : kSilentWhenSet) {
    if (name == silent) return {name};
  }
  return {};
}

}  // namespace db
