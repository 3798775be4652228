"""A SQLite-compatible library through ctypes, beside others in the process.

Load the system's library by name before any other by path: once one is loaded, its name answers.
"""
import ctypes
import os


class Library:
    def __init__(self, path, database=":memory:", utf16=False):
        lib = ctypes.CDLL(path, mode=os.RTLD_LOCAL | os.RTLD_NOW)
        self.lib = lib
        lib.sqlite3_errmsg.restype = ctypes.c_char_p
        lib.sqlite3_column_text.restype = ctypes.c_void_p
        lib.sqlite3_column_text16.restype = ctypes.c_void_p
        self.db = ctypes.c_void_p()
        if utf16:
            name = (database + "\0").encode("utf-16-le")
            self.opened = lib.sqlite3_open16(name, ctypes.byref(self.db))
        else:
            self.opened = lib.sqlite3_open(database.encode(), ctypes.byref(self.db))
        lib.sqlite3_extended_result_codes(self.db, 1)

    def close(self):
        return self.lib.sqlite3_close(self.db)

    def version(self):
        return self.lib.sqlite3_libversion_number()

    def failure(self, where, code):
        text = self.lib.sqlite3_errmsg(self.db).decode()
        offset = self.lib.sqlite3_error_offset(self.db)
        return f"{where} {code} {text} @{offset}"

    def answer(self, sql):
        """How preparing and running one statement ends: "ok", or where, code, text and offset."""
        statement = ctypes.c_void_p()
        code = self.lib.sqlite3_prepare_v2(self.db, sql.encode(), -1, ctypes.byref(statement), None)
        if code != 0:
            return self.failure("prepare", code)
        code = 100
        while code == 100:
            code = self.lib.sqlite3_step(statement)
        out = "ok" if code == 101 else self.failure("step", code)
        self.lib.sqlite3_finalize(statement)
        return out

    def rows(self, sql, wide=False):
        """The rows of one or more statements as tuples of text, or the failure. `wide`: UTF-16 calls."""
        out = []
        statement = ctypes.c_void_p()
        tail = ctypes.c_void_p()
        encoding = "utf-16-le" if wide else "utf-8"
        data = ctypes.create_string_buffer((sql + "\0").encode(encoding))
        at = ctypes.addressof(data)
        end = at + len(data.raw) - (3 if wide else 2)
        prepare = self.lib.sqlite3_prepare16_v2 if wide else self.lib.sqlite3_prepare_v2
        while at < end:
            code = prepare(self.db, ctypes.c_void_p(at), -1, ctypes.byref(statement), ctypes.byref(tail))
            if code != 0:
                return self.failure("prepare", code)
            at = tail.value
            if not statement:
                continue
            while (code := self.lib.sqlite3_step(statement)) == 100:
                count = self.lib.sqlite3_column_count(statement)
                out.append(tuple(self.text(statement, i, wide) for i in range(count)))
            failed = None if code == 101 else self.failure("step", code)
            self.lib.sqlite3_finalize(statement)
            if failed:
                return failed
        return out

    def text(self, statement, column, wide):
        read = self.lib.sqlite3_column_text16 if wide else self.lib.sqlite3_column_text
        size = self.lib.sqlite3_column_bytes16 if wide else self.lib.sqlite3_column_bytes
        at = read(statement, column)
        if not at:
            return None
        return ctypes.string_at(at, size(statement, column)).decode("utf-16-le" if wide else "utf-8",
                                                                    "replace")
