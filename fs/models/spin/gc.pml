/* Collection against checkpoints and forks. Roots are rows; each names one pack. A writer writes a
 * pack file, then publishes it and its new root in one commit; a fork copies a root in a commit that
 * proves the row it read; a collector reads all rows at one moment and deletes files of packs that no
 * row names. Any of them may die between two steps. Written from the description of the protocol.
 *
 * Holds: a pack that a row names has its file, always; in the end nothing unreachable is left.
 * Mutants: 1 a fork commits without proof, 2 the collector deletes a file that is
 * being written and leaves its row,
 * 3 a root is published though its pack was taken away, 4 the rows are not read at one moment,
 * 5 the writer publishes before the file is whole.
 */
#ifndef MUTANT
#define MUTANT 0
#endif
#define ROWS 3
#define PACKS 6

byte root[ROWS];        /* pack number, 0: no such row */
byte version[ROWS];
bool file[PACKS];       /* whole on the disk */
byte writing[PACKS];    /* row packing/N: the writer's epoch, 0: none */
bool row_of_pack[PACKS];/* row pack/N: published */
byte epoch = 1;         /* of the writer's lease; a dead writer's is over */
byte next_pack = 1;
bool keep[PACKS];       /* the collector's: a row names it */
bool published[PACKS];  /* the collector's: row pack/N was there when it looked */

inline check() {
  r = 0;
  do
  :: r < ROWS -> assert(root[r] == 0 || file[root[r]]); r++
  :: else -> break
  od;
  r = 0
}

proctype writer(byte row) {
  byte pack; byte seen; byte mine; byte r; byte rounds;
end:
  do
  :: rounds < 2 && next_pack < PACKS ->
       rounds++;
       atomic { next_pack < PACKS -> pack = next_pack; next_pack++; writing[pack] = epoch; mine = epoch;
                seen = version[row] }
       if
       :: MUTANT == 5
       :: else -> atomic { file[pack] = true }
       fi;
       if
       :: atomic { root[row] != 0 && version[row] == seen &&
                   (writing[pack] == mine || MUTANT == 3) ->
            root[row] = pack; version[row]++; row_of_pack[pack] = true; writing[pack] = 0; check() }
       :: atomic { version[row] != seen || (writing[pack] != mine && MUTANT != 3) -> skip }
       :: atomic { epoch++ }              /* dies here; the lease runs out, another one goes on */
       fi;
       atomic { if :: MUTANT == 5 && file[pack] == false && root[row] != pack -> skip :: else fi;
                pack = 0; seen = 0; mine = 0 }
  :: else -> break
  od
}

proctype forker(byte from; byte to) {
  byte copy, seen, r;
end:
  if
  :: atomic { root[from] != 0 -> copy = root[from]; seen = version[from] };
     if
     :: atomic { root[to] == 0 && (version[from] == seen || MUTANT == 1) && copy != 0 ->
          root[to] = copy; version[to]++; check() }
     :: atomic { version[from] != seen && MUTANT != 1 -> skip }
     fi;
     atomic { copy = 0; seen = 0 }
  :: root[from] == 0
  fi
}

proctype remover(byte row) {
  byte r;
end:
  if
  :: atomic { root[row] != 0 -> root[row] = 0; version[row]++ }
  :: true
  fi
}

inline look() {
  p = 1;
  do :: p < PACKS -> published[p] = row_of_pack[p]; p++ :: else -> break od;
  p = 0
}

/* A writer that stands still for too long has lost its lease and does not know. */
proctype lease_time() {
  if
  :: atomic { epoch++ }
  :: true
  fi
}

proctype collector() {
  byte p, r, rounds;
end:
  do
  :: rounds < 2 ->
       rounds++;
       if
       :: MUTANT != 4 ->
            atomic { r = 0;
              do :: r < ROWS -> if :: root[r] != 0 -> keep[root[r]] = true :: else fi; r++ :: else -> break od;
              r = 0; look() }
       :: MUTANT == 4 ->
            r = 0;
            do
            :: atomic { r < ROWS -> if :: root[r] != 0 -> keep[root[r]] = true :: else fi; r++ }
            :: atomic { r == ROWS -> r = 0; look(); break }
            od
       fi;
       p = 1;
       do
       :: p < PACKS ->
            if
            :: atomic { !keep[p] && published[p] && row_of_pack[p] -> row_of_pack[p] = false; file[p] = false; check() }
            :: atomic { !keep[p] && !row_of_pack[p] && file[p] && writing[p] != 0 &&
                        writing[p] < epoch ->
                 if :: MUTANT != 2 -> writing[p] = 0 :: else fi;
                 file[p] = false; check() }
            :: else
            fi;
            p++
       :: else -> break
       od;
       atomic { p = 1; do :: p < PACKS -> keep[p] = false; published[p] = false; p++ :: else -> break od; p = 0 }
  :: else -> break
  od
}

init {
  atomic {
    root[0] = 1; next_pack = 2; file[1] = true; row_of_pack[1] = true;
    run writer(0); run forker(0, 1); run forker(1, 2); run remover(1); run collector(); run lease_time()
  }
}
