/* The commit protocol of kvd: one round of its event loop. Any of the writes that wait are taken and
   appended to the log, the log is synced once, and only then do their replies go out.

   The world around it is the checker's: bit i of `waiting` is write i not yet read, of `pending` in
   memory, of `taken` owed a reply, of `disk` on the disk, of `acked` answered with OK. A crash may
   come between any two steps. */

inline append(write) {
  pending = pending | write;
  taken = taken | write
}

/* Page by page: a crash in the middle leaves any of them behind. */
inline sync_log() {
  do
  :: pending == 0 -> break
  :: pending & 1 -> atomic { disk = disk | 1; pending = pending & ~1 }
  :: pending & 2 -> atomic { disk = disk | 2; pending = pending & ~2 }
  :: pending & 4 -> atomic { disk = disk | 4; pending = pending & ~4 }
  od
}

inline reply() {
  atomic { acked = acked | taken; taken = 0 }
}

inline one_round() {
  do
  :: waiting & 1 -> waiting = waiting & ~1; append(1)
  :: waiting & 2 -> waiting = waiting & ~2; append(2)
  :: waiting & 4 -> waiting = waiting & ~4; append(4)
  :: break
  od;
  sync_log();
  reply()
}
