/* A log of records on a disk with a write cache: append, sync, power cut, recovery, and a writer
 * that was fenced and goes on writing to its own old segment. Each record names the record before it
 * (the chain). Written from the description of the format, without a look at fs/log.
 *
 * Holds: what a finished sync covered is recovered, in order and unchanged; what is recovered is a
 * prefix of one history; a fenced writer is not heard.
 * Mutants: 1 a sync answers before the disk did, 2 recovery steps over a torn record, 3 recovery
 * takes whatever record is whole, 4 a sync covers what was appended while it ran, 5 a segment counts
 * beyond the first record of the next one.
 */
#ifndef MUTANT
#define MUTANT 0
#endif
#define N 5            /* places; record k lies at place k of a segment */
#define SEGMENTS 4
#ifndef CUTS
#define CUTS 2
#endif
#define EMPTY 0
#define TORN 99

/* segment s, place k -> what is there: an id, unique for each write ever made */
byte cell[24];         /* at(s, k) */
byte before[24];       /* the id that the record names as its predecessor */
bool durable[24];
byte first[SEGMENTS];  /* first place of the segment, 0: not begun */
byte current, next_id = 1;
byte head, synced;     /* of the living writer */
byte truth[6];         /* id that an answered sync promised at a place */
byte tail_id;          /* id of the record at head */
byte sync_upto;        /* a sync is running up to here */
bool syncing;
byte cuts;
bool old_writes;

#define at(s, k) ((s) * (N + 1) + (k))

inline promise(upto) {
  k = 1;
  do
  :: k <= upto -> if :: truth[k] == 0 -> truth[k] = here[k] :: else fi; k++
  :: else -> break
  od;
  k = 0
}

byte here[6];          /* id of the living history at a place */

inline power_cut() {
  s = 0;
  do
  :: s < SEGMENTS ->
       k = 1;
       do
       :: k <= N ->
            if
            :: cell[at(s, k)] != EMPTY && !durable[at(s, k)] ->
                 if
                 :: true                                   /* it got there */
                 :: cell[at(s, k)] = EMPTY; before[at(s, k)] = 0
                 :: cell[at(s, k)] = TORN; before[at(s, k)] = 0
                 fi
            :: else
            fi;
            k++
       :: else -> break
       od;
       s++
  :: else -> break
  od;
  s = 0; k = 0
}

/* The longest valid prefix over the segments in order; then a new segment behind it. */
inline recover() {
  head = 0; tail_id = 0; s = 0; stop = false;
  do
  :: s < SEGMENTS && first[s] != 0 && !stop ->
       limit = N + 1;
       if
       :: s + 1 < SEGMENTS && first[s + 1] != 0 && MUTANT != 5 -> limit = first[s + 1]
       :: else
       fi;
       k = first[s];
       if
       :: k > head + 1 -> stop = true
       :: k <= head -> k = head + 1
       :: else
       fi;
       do
       :: !stop && k < limit && k <= N && (cell[at(s, k)] != EMPTY || MUTANT == 3) ->
            if
            :: cell[at(s, k)] == EMPTY -> skip
            :: cell[at(s, k)] == TORN -> if :: MUTANT == 2 :: else -> break fi
            :: cell[at(s, k)] != TORN && before[at(s, k)] != tail_id && MUTANT != 3 -> break
            :: else
            fi;
            if
            :: cell[at(s, k)] != EMPTY -> head = k; tail_id = cell[at(s, k)]; got[k] = tail_id
            :: else
            fi;
            k++
       :: else -> break
       od;
       s++
  :: else -> break
  od;
  k = 1;
  do
  :: k <= N ->
       if
       :: truth[k] != 0 -> assert(k <= head && got[k] == truth[k])
       :: else
       fi;
       if
       :: k <= head -> assert(got[k] != TORN && got[k] != EMPTY); here[k] = got[k]
       :: else -> here[k] = 0
       fi;
       got[k] = 0; k++
  :: else -> break
  od;
  /* What was recovered is made durable before anything is built on it; the rest goes. */
  s = 0;
  do
  :: s < SEGMENTS ->
       k = 1;
       do
       :: k <= N ->
            if
            :: cell[at(s, k)] != EMPTY && k <= head && cell[at(s, k)] == here[k] -> durable[at(s, k)] = true
            :: cell[at(s, k)] != EMPTY && k > head -> cell[at(s, k)] = EMPTY; before[at(s, k)] = 0
            :: else
            fi;
            k++
       :: else -> break
       od;
       s++
  :: else -> break
  od;
  synced = head; syncing = false; sync_upto = 0; current++; s = 0; k = 0; limit = 0; stop = false;
  if
  :: current < SEGMENTS -> first[current] = head + 1
  :: else
  fi
}

active proctype machine() {
  byte s, k, limit, got[6], old_head, old_tail;
  bool stop;
  atomic { first[0] = 1 }
end:
  do
  :: d_step { head < N && current < SEGMENTS ->              /* append */
       head++; cell[at(current, head)] = next_id; before[at(current, head)] = tail_id;
       durable[at(current, head)] = false; here[head] = next_id; tail_id = next_id; next_id++ }
  :: atomic { !syncing && head > synced -> syncing = true; sync_upto = head;
       if :: MUTANT == 1 -> promise(sync_upto) :: else fi }
  :: atomic { syncing ->                                      /* the disk answers */
       k = 1;
       do
       :: k <= sync_upto -> durable[at(current, k)] = true; k++
       :: else -> break
       od;
       k = 0;
       if
       :: MUTANT == 4 -> synced = head
       :: else -> synced = sync_upto
       fi;
       promise(synced); syncing = false; sync_upto = 0 }
  :: atomic { cuts < CUTS && current + 1 < SEGMENTS -> cuts++;  /* power goes and comes */
       power_cut(); recover() }
  :: atomic { current + 1 < SEGMENTS && !old_writes && head < N ->
       /* another writer takes over; this one does not know yet and writes once more */
       old_head = head; old_tail = tail_id; stop = false;
       recover(); old_writes = true;
       cell[at(current - 1, old_head + 1)] = next_id; before[at(current - 1, old_head + 1)] = old_tail;
       durable[at(current - 1, old_head + 1)] = true; next_id++; old_head = 0; old_tail = 0 }
  od
}
