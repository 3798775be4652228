/* The C interface of FleetDB: names, numbers and meanings are SQLite's, so that a program written
 * for libsqlite3 compiles and links against this library unchanged. What each call does is
 * described in SQLite's own C reference; where FleetDB answers differently, the declaration says
 * so.
 *
 * Threads: serialized mode. A connection and its statements may be used from any thread; calls on
 * one connection take turns. Text is UTF-8 unless the name ends in 16 (native-endian UTF-16).
 */
#ifndef FLEETDB_SQLITE3_H
#define FLEETDB_SQLITE3_H
#pragma once

#include <stdarg.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SQLITE_API __attribute__((visibility("default")))

#define SQLITE_VERSION "3.53.2"
#define SQLITE_VERSION_NUMBER 3053002

typedef long long int sqlite_int64;
typedef unsigned long long int sqlite_uint64;
typedef sqlite_int64 sqlite3_int64;
typedef sqlite_uint64 sqlite3_uint64;

typedef struct sqlite3 sqlite3;
typedef struct sqlite3_stmt sqlite3_stmt;
typedef struct sqlite3_value sqlite3_value;
typedef struct sqlite3_context sqlite3_context;
typedef struct sqlite3_blob sqlite3_blob;
typedef struct sqlite3_backup sqlite3_backup;
typedef struct sqlite3_mutex sqlite3_mutex;
typedef struct sqlite3_str sqlite3_str;
typedef struct sqlite3_module sqlite3_module;
typedef struct sqlite3_vfs sqlite3_vfs;
typedef struct sqlite3_file sqlite3_file;

typedef void (*sqlite3_destructor_type)(void*);
typedef int (*sqlite3_callback)(void*, int, char**, char**);

#define SQLITE_STATIC ((sqlite3_destructor_type)0)
#define SQLITE_TRANSIENT ((sqlite3_destructor_type) - 1)

/* Result codes. */
#define SQLITE_OK 0
#define SQLITE_ERROR 1
#define SQLITE_INTERNAL 2
#define SQLITE_PERM 3
#define SQLITE_ABORT 4
#define SQLITE_BUSY 5
#define SQLITE_LOCKED 6
#define SQLITE_NOMEM 7
#define SQLITE_READONLY 8
#define SQLITE_INTERRUPT 9
#define SQLITE_IOERR 10
#define SQLITE_CORRUPT 11
#define SQLITE_NOTFOUND 12
#define SQLITE_FULL 13
#define SQLITE_CANTOPEN 14
#define SQLITE_PROTOCOL 15
#define SQLITE_EMPTY 16
#define SQLITE_SCHEMA 17
#define SQLITE_TOOBIG 18
#define SQLITE_CONSTRAINT 19
#define SQLITE_MISMATCH 20
#define SQLITE_MISUSE 21
#define SQLITE_NOLFS 22
#define SQLITE_AUTH 23
#define SQLITE_FORMAT 24
#define SQLITE_RANGE 25
#define SQLITE_NOTADB 26
#define SQLITE_NOTICE 27
#define SQLITE_WARNING 28
#define SQLITE_ROW 100
#define SQLITE_DONE 101

/* Flags of sqlite3_open_v2(). */
#define SQLITE_OPEN_READONLY 0x00000001
#define SQLITE_OPEN_READWRITE 0x00000002
#define SQLITE_OPEN_CREATE 0x00000004
#define SQLITE_OPEN_URI 0x00000040
#define SQLITE_OPEN_MEMORY 0x00000080
#define SQLITE_OPEN_NOMUTEX 0x00008000
#define SQLITE_OPEN_FULLMUTEX 0x00010000
#define SQLITE_OPEN_SHAREDCACHE 0x00020000
#define SQLITE_OPEN_PRIVATECACHE 0x00040000
#define SQLITE_OPEN_NOFOLLOW 0x01000000
#define SQLITE_OPEN_EXRESCODE 0x02000000

/* Storage classes and encodings. */
#define SQLITE_INTEGER 1
#define SQLITE_FLOAT 2
#define SQLITE_TEXT 3
#define SQLITE3_TEXT 3
#define SQLITE_BLOB 4
#define SQLITE_NULL 5
#define SQLITE_UTF8 1
#define SQLITE_UTF16LE 2
#define SQLITE_UTF16BE 3
#define SQLITE_UTF16 4
#define SQLITE_ANY 5
#define SQLITE_UTF16_ALIGNED 8

/* Flags of functions and of sqlite3_prepare_v3(). */
#define SQLITE_DETERMINISTIC 0x000000800
#define SQLITE_DIRECTONLY 0x000080000
#define SQLITE_SUBTYPE 0x000100000
#define SQLITE_INNOCUOUS 0x000200000
#define SQLITE_RESULT_SUBTYPE 0x001000000
#define SQLITE_PREPARE_PERSISTENT 0x01
#define SQLITE_PREPARE_NORMALIZE 0x02
#define SQLITE_PREPARE_NO_VTAB 0x04

/* Answers of an authorizer. */
#define SQLITE_DENY 1
#define SQLITE_IGNORE 2

/* Events of sqlite3_trace_v2(). */
#define SQLITE_TRACE_STMT 0x01
#define SQLITE_TRACE_PROFILE 0x02
#define SQLITE_TRACE_ROW 0x04
#define SQLITE_TRACE_CLOSE 0x08

/* sqlite3_serialize() and sqlite3_deserialize(). */
#define SQLITE_SERIALIZE_NOCOPY 0x001
#define SQLITE_DESERIALIZE_FREEONCLOSE 1
#define SQLITE_DESERIALIZE_RESIZEABLE 2
#define SQLITE_DESERIALIZE_READONLY 4

#define SQLITE_CHECKPOINT_PASSIVE 0
#define SQLITE_CHECKPOINT_FULL 1
#define SQLITE_CHECKPOINT_RESTART 2
#define SQLITE_CHECKPOINT_TRUNCATE 3

#define SQLITE_TXN_NONE 0
#define SQLITE_TXN_READ 1
#define SQLITE_TXN_WRITE 2

#include "sqlite3_constants.h"

/* The library. */
SQLITE_API extern const char sqlite3_version[];
SQLITE_API const char* sqlite3_libversion(void);
SQLITE_API const char* sqlite3_sourceid(void);
SQLITE_API int sqlite3_libversion_number(void);
SQLITE_API int sqlite3_threadsafe(void);
SQLITE_API int sqlite3_compileoption_used(const char* name);
SQLITE_API const char* sqlite3_compileoption_get(int index);
SQLITE_API int sqlite3_initialize(void);
SQLITE_API int sqlite3_shutdown(void);
SQLITE_API int sqlite3_os_init(void);
SQLITE_API int sqlite3_os_end(void);
SQLITE_API int sqlite3_config(int option, ...);
SQLITE_API int sqlite3_enable_shared_cache(int on);
SQLITE_API int sqlite3_release_memory(int bytes);
SQLITE_API int sqlite3_sleep(int milliseconds);
SQLITE_API int sqlite3_status(int counter, int* current, int* highest, int reset);
SQLITE_API int sqlite3_status64(int counter, sqlite3_int64* current, sqlite3_int64* highest,
                                int reset);
SQLITE_API int sqlite3_keyword_count(void);
SQLITE_API int sqlite3_keyword_name(int index, const char** name, int* length);
SQLITE_API int sqlite3_keyword_check(const char* word, int length);
SQLITE_API int sqlite3_complete(const char* sql);
SQLITE_API int sqlite3_complete16(const void* sql);
SQLITE_API int sqlite3_test_control(int option, ...);
SQLITE_API void sqlite3_log(int code, const char* format, ...);

/* Memory, text and randomness. */
SQLITE_API void* sqlite3_malloc(int bytes);
SQLITE_API void* sqlite3_malloc64(sqlite3_uint64 bytes);
SQLITE_API void* sqlite3_realloc(void* memory, int bytes);
SQLITE_API void* sqlite3_realloc64(void* memory, sqlite3_uint64 bytes);
SQLITE_API void sqlite3_free(void* memory);
SQLITE_API sqlite3_uint64 sqlite3_msize(void* memory);
SQLITE_API sqlite3_int64 sqlite3_memory_used(void);
SQLITE_API sqlite3_int64 sqlite3_memory_highwater(int reset);
SQLITE_API sqlite3_int64 sqlite3_soft_heap_limit64(sqlite3_int64 bytes);
SQLITE_API sqlite3_int64 sqlite3_hard_heap_limit64(sqlite3_int64 bytes);
SQLITE_API void sqlite3_soft_heap_limit(int bytes);
SQLITE_API char* sqlite3_mprintf(const char* format, ...);
SQLITE_API char* sqlite3_vmprintf(const char* format, va_list args);
SQLITE_API char* sqlite3_snprintf(int size, char* out, const char* format, ...);
SQLITE_API char* sqlite3_vsnprintf(int size, char* out, const char* format, va_list args);
SQLITE_API int sqlite3_stricmp(const char* a, const char* b);
SQLITE_API int sqlite3_strnicmp(const char* a, const char* b, int bytes);
SQLITE_API int sqlite3_strglob(const char* pattern, const char* text);
SQLITE_API int sqlite3_strlike(const char* pattern, const char* text, unsigned int escape);
SQLITE_API void sqlite3_randomness(int bytes, void* out);
SQLITE_API sqlite3_str* sqlite3_str_new(sqlite3* db);
SQLITE_API char* sqlite3_str_finish(sqlite3_str* text);
SQLITE_API void sqlite3_str_free(sqlite3_str* text);
SQLITE_API void sqlite3_str_appendf(sqlite3_str* text, const char* format, ...);
SQLITE_API void sqlite3_str_vappendf(sqlite3_str* text, const char* format, va_list args);
SQLITE_API void sqlite3_str_append(sqlite3_str* text, const char* bytes, int count);
SQLITE_API void sqlite3_str_appendall(sqlite3_str* text, const char* more);
SQLITE_API void sqlite3_str_appendchar(sqlite3_str* text, int count, char letter);
SQLITE_API void sqlite3_str_reset(sqlite3_str* text);
SQLITE_API void sqlite3_str_truncate(sqlite3_str* text, int bytes);
SQLITE_API int sqlite3_str_errcode(sqlite3_str* text);
SQLITE_API int sqlite3_str_length(sqlite3_str* text);
SQLITE_API char* sqlite3_str_value(sqlite3_str* text);

/* Mutexes. */
SQLITE_API sqlite3_mutex* sqlite3_mutex_alloc(int kind);
SQLITE_API void sqlite3_mutex_free(sqlite3_mutex* mutex);
SQLITE_API void sqlite3_mutex_enter(sqlite3_mutex* mutex);
SQLITE_API int sqlite3_mutex_try(sqlite3_mutex* mutex);
SQLITE_API void sqlite3_mutex_leave(sqlite3_mutex* mutex);
SQLITE_API int sqlite3_mutex_held(sqlite3_mutex* mutex);
SQLITE_API int sqlite3_mutex_notheld(sqlite3_mutex* mutex);

/* Connections. */
SQLITE_API int sqlite3_open(const char* path, sqlite3** db);
SQLITE_API int sqlite3_open16(const void* path, sqlite3** db);
SQLITE_API int sqlite3_open_v2(const char* path, sqlite3** db, int flags, const char* vfs);
SQLITE_API int sqlite3_close(sqlite3* db);
SQLITE_API int sqlite3_close_v2(sqlite3* db);
SQLITE_API int sqlite3_exec(sqlite3* db, const char* sql, sqlite3_callback row, void* context,
                            char** error);
SQLITE_API int sqlite3_get_table(sqlite3* db, const char* sql, char*** table, int* rows,
                                 int* columns, char** error);
SQLITE_API void sqlite3_free_table(char** table);
SQLITE_API int sqlite3_errcode(sqlite3* db);
SQLITE_API int sqlite3_extended_errcode(sqlite3* db);
SQLITE_API int sqlite3_extended_result_codes(sqlite3* db, int on);
SQLITE_API const char* sqlite3_errmsg(sqlite3* db);
SQLITE_API const void* sqlite3_errmsg16(sqlite3* db);
SQLITE_API const char* sqlite3_errstr(int code);
SQLITE_API int sqlite3_error_offset(sqlite3* db);
SQLITE_API int sqlite3_set_errmsg(sqlite3* db, int code, const char* message);
SQLITE_API int sqlite3_system_errno(sqlite3* db);
SQLITE_API sqlite3_int64 sqlite3_last_insert_rowid(sqlite3* db);
SQLITE_API void sqlite3_set_last_insert_rowid(sqlite3* db, sqlite3_int64 rowid);
SQLITE_API int sqlite3_changes(sqlite3* db);
SQLITE_API sqlite3_int64 sqlite3_changes64(sqlite3* db);
SQLITE_API int sqlite3_total_changes(sqlite3* db);
SQLITE_API sqlite3_int64 sqlite3_total_changes64(sqlite3* db);
SQLITE_API void sqlite3_interrupt(sqlite3* db);
SQLITE_API int sqlite3_is_interrupted(sqlite3* db);
SQLITE_API int sqlite3_get_autocommit(sqlite3* db);
SQLITE_API int sqlite3_txn_state(sqlite3* db, const char* schema);
SQLITE_API int sqlite3_limit(sqlite3* db, int which, int value);
SQLITE_API int sqlite3_db_config(sqlite3* db, int option, ...);
SQLITE_API int sqlite3_db_status(sqlite3* db, int counter, int* current, int* highest, int reset);
SQLITE_API int sqlite3_db_status64(sqlite3* db, int counter, sqlite3_int64* current,
                                   sqlite3_int64* highest, int reset);
SQLITE_API const char* sqlite3_db_filename(sqlite3* db, const char* schema);
SQLITE_API const char* sqlite3_db_name(sqlite3* db, int index);
SQLITE_API int sqlite3_db_readonly(sqlite3* db, const char* schema);
SQLITE_API int sqlite3_db_release_memory(sqlite3* db);
SQLITE_API int sqlite3_db_cacheflush(sqlite3* db);
SQLITE_API sqlite3_mutex* sqlite3_db_mutex(sqlite3* db);
SQLITE_API int sqlite3_table_column_metadata(sqlite3* db, const char* schema, const char* table,
                                             const char* column, const char** type,
                                             const char** collation, int* not_null,
                                             int* primary_key, int* autoincrement);
SQLITE_API void* sqlite3_get_clientdata(sqlite3* db, const char* name);
SQLITE_API int sqlite3_set_clientdata(sqlite3* db, const char* name, void* data,
                                      void (*destroy)(void*));

/* Hooks. */
SQLITE_API int sqlite3_busy_handler(sqlite3* db, int (*busy)(void*, int), void* context);
SQLITE_API int sqlite3_busy_timeout(sqlite3* db, int milliseconds);
SQLITE_API int sqlite3_setlk_timeout(sqlite3* db, int milliseconds, int flags);
SQLITE_API void* sqlite3_commit_hook(sqlite3* db, int (*hook)(void*), void* context);
SQLITE_API void* sqlite3_rollback_hook(sqlite3* db, void (*hook)(void*), void* context);
SQLITE_API void* sqlite3_update_hook(
    sqlite3* db, void (*hook)(void*, int, char const*, char const*, sqlite3_int64), void* context);
SQLITE_API void* sqlite3_wal_hook(sqlite3* db, int (*hook)(void*, sqlite3*, const char*, int),
                                  void* context);
SQLITE_API int sqlite3_wal_autocheckpoint(sqlite3* db, int frames);
SQLITE_API int sqlite3_wal_checkpoint(sqlite3* db, const char* schema);
SQLITE_API int sqlite3_wal_checkpoint_v2(sqlite3* db, const char* schema, int mode, int* frames,
                                         int* done);
SQLITE_API int sqlite3_set_authorizer(sqlite3* db,
                                      int (*authorize)(void*, int, const char*, const char*,
                                                       const char*, const char*),
                                      void* context);
SQLITE_API void sqlite3_progress_handler(sqlite3* db, int steps, int (*progress)(void*),
                                         void* context);
SQLITE_API int sqlite3_trace_v2(sqlite3* db, unsigned mask,
                                int (*trace)(unsigned, void*, void*, void*), void* context);
SQLITE_API void* sqlite3_trace(sqlite3* db, void (*trace)(void*, const char*), void* context);
SQLITE_API void* sqlite3_profile(sqlite3* db, void (*profile)(void*, const char*, sqlite3_uint64),
                                 void* context);
SQLITE_API int sqlite3_autovacuum_pages(sqlite3* db,
                                        unsigned int (*pages)(void*, const char*, unsigned int,
                                                              unsigned int, unsigned int),
                                        void* context, void (*destroy)(void*));
SQLITE_API int sqlite3_unlock_notify(sqlite3* db, void (*notify)(void**, int), void* context);

/* Statements. */
SQLITE_API int sqlite3_prepare(sqlite3* db, const char* sql, int bytes, sqlite3_stmt** out,
                               const char** tail);
SQLITE_API int sqlite3_prepare_v2(sqlite3* db, const char* sql, int bytes, sqlite3_stmt** out,
                                  const char** tail);
SQLITE_API int sqlite3_prepare_v3(sqlite3* db, const char* sql, int bytes, unsigned flags,
                                  sqlite3_stmt** out, const char** tail);
SQLITE_API int sqlite3_prepare16(sqlite3* db, const void* sql, int bytes, sqlite3_stmt** out,
                                 const void** tail);
SQLITE_API int sqlite3_prepare16_v2(sqlite3* db, const void* sql, int bytes, sqlite3_stmt** out,
                                    const void** tail);
SQLITE_API int sqlite3_prepare16_v3(sqlite3* db, const void* sql, int bytes, unsigned flags,
                                    sqlite3_stmt** out, const void** tail);
SQLITE_API int sqlite3_step(sqlite3_stmt* statement);
SQLITE_API int sqlite3_reset(sqlite3_stmt* statement);
SQLITE_API int sqlite3_finalize(sqlite3_stmt* statement);
SQLITE_API sqlite3* sqlite3_db_handle(sqlite3_stmt* statement);
SQLITE_API sqlite3_stmt* sqlite3_next_stmt(sqlite3* db, sqlite3_stmt* after);
SQLITE_API const char* sqlite3_sql(sqlite3_stmt* statement);
SQLITE_API char* sqlite3_expanded_sql(sqlite3_stmt* statement);
SQLITE_API const char* sqlite3_normalized_sql(sqlite3_stmt* statement);
SQLITE_API int sqlite3_stmt_busy(sqlite3_stmt* statement);
SQLITE_API int sqlite3_stmt_readonly(sqlite3_stmt* statement);
SQLITE_API int sqlite3_stmt_isexplain(sqlite3_stmt* statement);
SQLITE_API int sqlite3_stmt_explain(sqlite3_stmt* statement, int mode);
SQLITE_API int sqlite3_stmt_status(sqlite3_stmt* statement, int counter, int reset);
SQLITE_API int sqlite3_expired(sqlite3_stmt* statement);
SQLITE_API int sqlite3_transfer_bindings(sqlite3_stmt* from, sqlite3_stmt* to);

SQLITE_API int sqlite3_bind_blob(sqlite3_stmt* s, int index, const void* data, int bytes,
                                 void (*free)(void*));
SQLITE_API int sqlite3_bind_blob64(sqlite3_stmt* s, int index, const void* data,
                                   sqlite3_uint64 bytes, void (*free)(void*));
SQLITE_API int sqlite3_bind_double(sqlite3_stmt* s, int index, double value);
SQLITE_API int sqlite3_bind_int(sqlite3_stmt* s, int index, int value);
SQLITE_API int sqlite3_bind_int64(sqlite3_stmt* s, int index, sqlite3_int64 value);
SQLITE_API int sqlite3_bind_null(sqlite3_stmt* s, int index);
SQLITE_API int sqlite3_bind_text(sqlite3_stmt* s, int index, const char* text, int bytes,
                                 void (*free)(void*));
SQLITE_API int sqlite3_bind_text16(sqlite3_stmt* s, int index, const void* text, int bytes,
                                   void (*free)(void*));
SQLITE_API int sqlite3_bind_text64(sqlite3_stmt* s, int index, const char* text,
                                   sqlite3_uint64 bytes, void (*free)(void*),
                                   unsigned char encoding);
SQLITE_API int sqlite3_bind_value(sqlite3_stmt* s, int index, const sqlite3_value* value);
SQLITE_API int sqlite3_bind_pointer(sqlite3_stmt* s, int index, void* pointer, const char* type,
                                    void (*free)(void*));
SQLITE_API int sqlite3_bind_zeroblob(sqlite3_stmt* s, int index, int bytes);
SQLITE_API int sqlite3_bind_zeroblob64(sqlite3_stmt* s, int index, sqlite3_uint64 bytes);
SQLITE_API int sqlite3_bind_parameter_count(sqlite3_stmt* s);
SQLITE_API const char* sqlite3_bind_parameter_name(sqlite3_stmt* s, int index);
SQLITE_API int sqlite3_bind_parameter_index(sqlite3_stmt* s, const char* name);
SQLITE_API int sqlite3_clear_bindings(sqlite3_stmt* s);

SQLITE_API int sqlite3_column_count(sqlite3_stmt* s);
SQLITE_API int sqlite3_data_count(sqlite3_stmt* s);
SQLITE_API const char* sqlite3_column_name(sqlite3_stmt* s, int column);
SQLITE_API const void* sqlite3_column_name16(sqlite3_stmt* s, int column);
SQLITE_API const char* sqlite3_column_database_name(sqlite3_stmt* s, int column);
SQLITE_API const void* sqlite3_column_database_name16(sqlite3_stmt* s, int column);
SQLITE_API const char* sqlite3_column_table_name(sqlite3_stmt* s, int column);
SQLITE_API const void* sqlite3_column_table_name16(sqlite3_stmt* s, int column);
SQLITE_API const char* sqlite3_column_origin_name(sqlite3_stmt* s, int column);
SQLITE_API const void* sqlite3_column_origin_name16(sqlite3_stmt* s, int column);
SQLITE_API const char* sqlite3_column_decltype(sqlite3_stmt* s, int column);
SQLITE_API const void* sqlite3_column_decltype16(sqlite3_stmt* s, int column);
SQLITE_API const void* sqlite3_column_blob(sqlite3_stmt* s, int column);
SQLITE_API double sqlite3_column_double(sqlite3_stmt* s, int column);
SQLITE_API int sqlite3_column_int(sqlite3_stmt* s, int column);
SQLITE_API sqlite3_int64 sqlite3_column_int64(sqlite3_stmt* s, int column);
SQLITE_API const unsigned char* sqlite3_column_text(sqlite3_stmt* s, int column);
SQLITE_API const void* sqlite3_column_text16(sqlite3_stmt* s, int column);
SQLITE_API sqlite3_value* sqlite3_column_value(sqlite3_stmt* s, int column);
SQLITE_API int sqlite3_column_bytes(sqlite3_stmt* s, int column);
SQLITE_API int sqlite3_column_bytes16(sqlite3_stmt* s, int column);
SQLITE_API int sqlite3_column_type(sqlite3_stmt* s, int column);

/* Values, and functions of the application's. */
SQLITE_API const void* sqlite3_value_blob(sqlite3_value* value);
SQLITE_API double sqlite3_value_double(sqlite3_value* value);
SQLITE_API int sqlite3_value_int(sqlite3_value* value);
SQLITE_API sqlite3_int64 sqlite3_value_int64(sqlite3_value* value);
SQLITE_API void* sqlite3_value_pointer(sqlite3_value* value, const char* type);
SQLITE_API const unsigned char* sqlite3_value_text(sqlite3_value* value);
SQLITE_API const void* sqlite3_value_text16(sqlite3_value* value);
SQLITE_API const void* sqlite3_value_text16le(sqlite3_value* value);
SQLITE_API const void* sqlite3_value_text16be(sqlite3_value* value);
SQLITE_API int sqlite3_value_bytes(sqlite3_value* value);
SQLITE_API int sqlite3_value_bytes16(sqlite3_value* value);
SQLITE_API int sqlite3_value_type(sqlite3_value* value);
SQLITE_API int sqlite3_value_numeric_type(sqlite3_value* value);
SQLITE_API int sqlite3_value_nochange(sqlite3_value* value);
SQLITE_API int sqlite3_value_frombind(sqlite3_value* value);
SQLITE_API int sqlite3_value_encoding(sqlite3_value* value);
SQLITE_API unsigned int sqlite3_value_subtype(sqlite3_value* value);
SQLITE_API sqlite3_value* sqlite3_value_dup(const sqlite3_value* value);
SQLITE_API void sqlite3_value_free(sqlite3_value* value);

SQLITE_API int sqlite3_create_function(sqlite3* db, const char* name, int args, int flags,
                                       void* app,
                                       void (*call)(sqlite3_context*, int, sqlite3_value**),
                                       void (*step)(sqlite3_context*, int, sqlite3_value**),
                                       void (*final)(sqlite3_context*));
SQLITE_API int sqlite3_create_function16(sqlite3* db, const void* name, int args, int flags,
                                         void* app,
                                         void (*call)(sqlite3_context*, int, sqlite3_value**),
                                         void (*step)(sqlite3_context*, int, sqlite3_value**),
                                         void (*final)(sqlite3_context*));
SQLITE_API int sqlite3_create_function_v2(sqlite3* db, const char* name, int args, int flags,
                                          void* app,
                                          void (*call)(sqlite3_context*, int, sqlite3_value**),
                                          void (*step)(sqlite3_context*, int, sqlite3_value**),
                                          void (*final)(sqlite3_context*), void (*destroy)(void*));
SQLITE_API int sqlite3_create_window_function(
    sqlite3* db, const char* name, int args, int flags, void* app,
    void (*step)(sqlite3_context*, int, sqlite3_value**), void (*final)(sqlite3_context*),
    void (*value)(sqlite3_context*), void (*inverse)(sqlite3_context*, int, sqlite3_value**),
    void (*destroy)(void*));
SQLITE_API int sqlite3_overload_function(sqlite3* db, const char* name, int args);
SQLITE_API int sqlite3_create_collation(sqlite3* db, const char* name, int encoding, void* app,
                                        int (*compare)(void*, int, const void*, int, const void*));
SQLITE_API int sqlite3_create_collation_v2(sqlite3* db, const char* name, int encoding, void* app,
                                           int (*compare)(void*, int, const void*, int,
                                                          const void*),
                                           void (*destroy)(void*));
SQLITE_API int sqlite3_create_collation16(sqlite3* db, const void* name, int encoding, void* app,
                                          int (*compare)(void*, int, const void*, int,
                                                         const void*));
SQLITE_API int sqlite3_collation_needed(sqlite3* db, void* app,
                                        void (*needed)(void*, sqlite3*, int, const char*));
SQLITE_API int sqlite3_collation_needed16(sqlite3* db, void* app,
                                          void (*needed)(void*, sqlite3*, int, const void*));
SQLITE_API void* sqlite3_user_data(sqlite3_context* context);
SQLITE_API sqlite3* sqlite3_context_db_handle(sqlite3_context* context);
SQLITE_API void* sqlite3_aggregate_context(sqlite3_context* context, int bytes);
SQLITE_API int sqlite3_aggregate_count(sqlite3_context* context);
SQLITE_API void* sqlite3_get_auxdata(sqlite3_context* context, int argument);
SQLITE_API void sqlite3_set_auxdata(sqlite3_context* context, int argument, void* data,
                                    void (*destroy)(void*));
SQLITE_API void sqlite3_result_blob(sqlite3_context* c, const void* data, int bytes,
                                    void (*free)(void*));
SQLITE_API void sqlite3_result_blob64(sqlite3_context* c, const void* data, sqlite3_uint64 bytes,
                                      void (*free)(void*));
SQLITE_API void sqlite3_result_double(sqlite3_context* c, double value);
SQLITE_API void sqlite3_result_error(sqlite3_context* c, const char* message, int bytes);
SQLITE_API void sqlite3_result_error16(sqlite3_context* c, const void* message, int bytes);
SQLITE_API void sqlite3_result_error_toobig(sqlite3_context* c);
SQLITE_API void sqlite3_result_error_nomem(sqlite3_context* c);
SQLITE_API void sqlite3_result_error_code(sqlite3_context* c, int code);
SQLITE_API void sqlite3_result_int(sqlite3_context* c, int value);
SQLITE_API void sqlite3_result_int64(sqlite3_context* c, sqlite3_int64 value);
SQLITE_API void sqlite3_result_null(sqlite3_context* c);
SQLITE_API void sqlite3_result_text(sqlite3_context* c, const char* text, int bytes,
                                    void (*free)(void*));
SQLITE_API void sqlite3_result_text64(sqlite3_context* c, const char* text, sqlite3_uint64 bytes,
                                      void (*free)(void*), unsigned char encoding);
SQLITE_API void sqlite3_result_text16(sqlite3_context* c, const void* text, int bytes,
                                      void (*free)(void*));
SQLITE_API void sqlite3_result_text16le(sqlite3_context* c, const void* text, int bytes,
                                        void (*free)(void*));
SQLITE_API void sqlite3_result_text16be(sqlite3_context* c, const void* text, int bytes,
                                        void (*free)(void*));
SQLITE_API void sqlite3_result_value(sqlite3_context* c, sqlite3_value* value);
SQLITE_API void sqlite3_result_pointer(sqlite3_context* c, void* pointer, const char* type,
                                       void (*free)(void*));
SQLITE_API void sqlite3_result_zeroblob(sqlite3_context* c, int bytes);
SQLITE_API int sqlite3_result_zeroblob64(sqlite3_context* c, sqlite3_uint64 bytes);
SQLITE_API void sqlite3_result_subtype(sqlite3_context* c, unsigned int subtype);

/* Incremental blobs, backup, serialization. */
SQLITE_API int sqlite3_blob_open(sqlite3*, const char* schema, const char* table,
                                 const char* column, sqlite3_int64 rowid, int writable,
                                 sqlite3_blob** blob);
SQLITE_API int sqlite3_blob_reopen(sqlite3_blob*, sqlite3_int64 rowid);
SQLITE_API int sqlite3_blob_close(sqlite3_blob*);
SQLITE_API int sqlite3_blob_bytes(sqlite3_blob*);
SQLITE_API int sqlite3_blob_read(sqlite3_blob*, void* out, int bytes, int offset);
SQLITE_API int sqlite3_blob_write(sqlite3_blob*, const void* data, int bytes, int offset);
SQLITE_API sqlite3_backup* sqlite3_backup_init(sqlite3* to, const char* to_schema, sqlite3* from,
                                               const char* from_schema);
SQLITE_API int sqlite3_backup_step(sqlite3_backup*, int pages);
SQLITE_API int sqlite3_backup_finish(sqlite3_backup*);
SQLITE_API int sqlite3_backup_remaining(sqlite3_backup*);
SQLITE_API int sqlite3_backup_pagecount(sqlite3_backup*);
SQLITE_API unsigned char* sqlite3_serialize(sqlite3*, const char* schema, sqlite3_int64* bytes,
                                            unsigned int flags);
SQLITE_API int sqlite3_deserialize(sqlite3*, const char* schema, unsigned char* data,
                                   sqlite3_int64 bytes, sqlite3_int64 capacity, unsigned flags);

/* Files. The file layer of this library cannot be replaced; look-ups answer. */
SQLITE_API extern const char sqlite3_version[];
SQLITE_API extern char* sqlite3_temp_directory;
SQLITE_API extern char* sqlite3_data_directory;
SQLITE_API sqlite3_vfs* sqlite3_vfs_find(const char* name);
SQLITE_API int sqlite3_vfs_register(sqlite3_vfs*, int make_default);
SQLITE_API int sqlite3_vfs_unregister(sqlite3_vfs*);
SQLITE_API int sqlite3_file_control(sqlite3*, const char* schema, int op, void* argument);
SQLITE_API const char* sqlite3_uri_parameter(const char* file, const char* name);
SQLITE_API int sqlite3_uri_boolean(const char* file, const char* name, int otherwise);
SQLITE_API sqlite3_int64 sqlite3_uri_int64(const char* file, const char* name,
                                           sqlite3_int64 otherwise);
SQLITE_API const char* sqlite3_uri_key(const char* file, int index);
SQLITE_API const char* sqlite3_filename_database(const char* file);
SQLITE_API const char* sqlite3_filename_journal(const char* file);
SQLITE_API const char* sqlite3_filename_wal(const char* file);
SQLITE_API void* sqlite3_database_file_object(const char* file);
SQLITE_API const char* sqlite3_create_filename(const char* database, const char* journal,
                                               const char* wal, int pairs, const char** parameters);
SQLITE_API void sqlite3_free_filename(const char* file);

/* Extensions. */
typedef struct sqlite3_api_routines sqlite3_api_routines;
SQLITE_API int sqlite3_enable_load_extension(sqlite3*, int on);
SQLITE_API int sqlite3_load_extension(sqlite3*, const char* file, const char* entry, char** error);
SQLITE_API int sqlite3_auto_extension(void (*entry)(void));
SQLITE_API int sqlite3_cancel_auto_extension(void (*entry)(void));
SQLITE_API void sqlite3_reset_auto_extension(void);

/* Virtual tables. */
typedef struct sqlite3_vtab sqlite3_vtab;
typedef struct sqlite3_vtab_cursor sqlite3_vtab_cursor;
typedef struct sqlite3_index_info sqlite3_index_info;

struct sqlite3_vtab {
  const sqlite3_module* pModule;
  int nRef;
  char* zErrMsg;
};
struct sqlite3_vtab_cursor {
  sqlite3_vtab* pVtab;
};
struct sqlite3_index_constraint {
  int iColumn;
  unsigned char op;
  unsigned char usable;
  int iTermOffset;
};
struct sqlite3_index_orderby {
  int iColumn;
  unsigned char desc;
};
struct sqlite3_index_constraint_usage {
  int argvIndex;
  unsigned char omit;
};
struct sqlite3_index_info {
  int nConstraint;
  struct sqlite3_index_constraint* aConstraint;
  int nOrderBy;
  struct sqlite3_index_orderby* aOrderBy;
  struct sqlite3_index_constraint_usage* aConstraintUsage;
  int idxNum;
  char* idxStr;
  int needToFreeIdxStr;
  int orderByConsumed;
  double estimatedCost;
  sqlite3_int64 estimatedRows;
  int idxFlags;
  sqlite3_uint64 colUsed;
};
struct sqlite3_module {
  int iVersion;
  int (*xCreate)(sqlite3*, void*, int, const char* const*, sqlite3_vtab**, char**);
  int (*xConnect)(sqlite3*, void*, int, const char* const*, sqlite3_vtab**, char**);
  int (*xBestIndex)(sqlite3_vtab*, sqlite3_index_info*);
  int (*xDisconnect)(sqlite3_vtab*);
  int (*xDestroy)(sqlite3_vtab*);
  int (*xOpen)(sqlite3_vtab*, sqlite3_vtab_cursor**);
  int (*xClose)(sqlite3_vtab_cursor*);
  int (*xFilter)(sqlite3_vtab_cursor*, int, const char*, int, sqlite3_value**);
  int (*xNext)(sqlite3_vtab_cursor*);
  int (*xEof)(sqlite3_vtab_cursor*);
  int (*xColumn)(sqlite3_vtab_cursor*, sqlite3_context*, int);
  int (*xRowid)(sqlite3_vtab_cursor*, sqlite3_int64*);
  int (*xUpdate)(sqlite3_vtab*, int, sqlite3_value**, sqlite3_int64*);
  int (*xBegin)(sqlite3_vtab*);
  int (*xSync)(sqlite3_vtab*);
  int (*xCommit)(sqlite3_vtab*);
  int (*xRollback)(sqlite3_vtab*);
  int (*xFindFunction)(sqlite3_vtab*, int, const char*,
                       void (**)(sqlite3_context*, int, sqlite3_value**), void**);
  int (*xRename)(sqlite3_vtab*, const char*);
  int (*xSavepoint)(sqlite3_vtab*, int);
  int (*xRelease)(sqlite3_vtab*, int);
  int (*xRollbackTo)(sqlite3_vtab*, int);
  int (*xShadowName)(const char*);
  int (*xIntegrity)(sqlite3_vtab*, const char*, const char*, int, char**);
};

SQLITE_API int sqlite3_create_module(sqlite3*, const char* name, const sqlite3_module*, void*);
SQLITE_API int sqlite3_create_module_v2(sqlite3*, const char* name, const sqlite3_module*, void*,
                                        void (*free)(void*));
SQLITE_API int sqlite3_drop_modules(sqlite3*, const char** keep);
SQLITE_API int sqlite3_declare_vtab(sqlite3*, const char* sql);
SQLITE_API int sqlite3_vtab_config(sqlite3*, int op, ...);
SQLITE_API int sqlite3_vtab_on_conflict(sqlite3*);
SQLITE_API int sqlite3_vtab_nochange(sqlite3_context*);
SQLITE_API const char* sqlite3_vtab_collation(sqlite3_index_info*, int);
SQLITE_API int sqlite3_vtab_distinct(sqlite3_index_info*);
SQLITE_API int sqlite3_vtab_in(sqlite3_index_info*, int, int);
SQLITE_API int sqlite3_vtab_in_first(sqlite3_value*, sqlite3_value**);
SQLITE_API int sqlite3_vtab_in_next(sqlite3_value*, sqlite3_value**);
SQLITE_API int sqlite3_vtab_rhs_value(sqlite3_index_info*, int, sqlite3_value**);

/* Kept for programs that still link them. */
SQLITE_API int sqlite3_global_recover(void);
SQLITE_API void sqlite3_thread_cleanup(void);
SQLITE_API int sqlite3_memory_alarm(void (*)(void*, sqlite3_int64, int), void*, sqlite3_int64);
SQLITE_API void* sqlite3_preupdate_hook(sqlite3*,
                                        void (*)(void*, sqlite3*, int, char const*, char const*,
                                                 sqlite3_int64, sqlite3_int64),
                                        void*);
SQLITE_API int sqlite3_preupdate_old(sqlite3*, int, sqlite3_value**);
SQLITE_API int sqlite3_preupdate_new(sqlite3*, int, sqlite3_value**);
SQLITE_API int sqlite3_preupdate_count(sqlite3*);
SQLITE_API int sqlite3_preupdate_depth(sqlite3*);
SQLITE_API int sqlite3_preupdate_blobwrite(sqlite3*);

#ifdef __cplusplus
}
#endif
#endif
