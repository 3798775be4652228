/* Renames of directories across directories by two clients, under one serialiser: a request is
 * checked and carried out in one step, whatever the client believed when it asked. Directories 1..4
 * below root 0. Plain renames replace an empty directory of the same place; exchanges swap two.
 *
 * Holds: every directory that lives is reached from the root by one path; link counts are true; no
 * directory that has entries disappears.
 * Mutants: 1 the client's check counts instead of the serialiser's, 2 only the direct parent is
 * looked at, 3 a directory with entries may be replaced, 4 link counts of the old parent stay, 5 an
 * exchange looks at one direction only.
 */
#ifndef MUTANT
#define MUTANT 0
#endif
#define N 5
#define NONE 9

byte parent[N];    /* NONE: the directory is gone */
byte subdirs[N];   /* what its link count says */
byte moves;
#ifndef MOVES
#define MOVES 4
#endif

/* inside(a, b): is a the same as b, or below it? */
inline inside(a, b, result) {
  w = a; steps = 0; result = false;
  do
  :: w == b -> result = true; break
  :: w != b && (w == 0 || steps == N || parent[w] == NONE) -> break
  :: else -> if :: MUTANT == 2 && steps == 1 -> break :: else fi; w = parent[w]; steps++
  od;
  w = 0; steps = 0
}

inline check() {
  d = 1;
  do
  :: d < N ->
       if
       :: parent[d] != NONE ->
            w = d; steps = 0;
            do
            :: w != 0 && steps < N -> assert(parent[w] != NONE); w = parent[w]; steps++
            :: else -> break
            od;
            assert(w == 0)
       :: else
       fi;
       d++
  :: else -> break
  od;
  d = 0;
  do
  :: d < N ->
       w = 1; steps = 0;
       do :: w < N -> if :: parent[w] == d -> steps++ :: else fi; w++ :: else -> break od;
       assert(parent[d] == NONE || subdirs[d] == steps);
       d++
  :: else -> break
  od;
  d = 0; w = 0; steps = 0
}

/* Moves `what` below `to`, over `over` (an entry of `to`) or to a free name (over == 0). */
inline move(what, to, over) {
  inside(to, what, loops);
  if
  :: MUTANT == 1 -> loops = believed
  :: else
  fi;
  if
  :: parent[what] == NONE || parent[to] == NONE && to != 0 || loops
  :: else ->
       if
       :: over != 0 && (parent[over] != to || over == what || (subdirs[over] != 0 && MUTANT != 3))
       :: else ->
            if
            :: over != 0 -> parent[over] = NONE; subdirs[to]--
            :: else
            fi;
            if :: MUTANT != 4 -> subdirs[parent[what]]-- :: else fi;
            parent[what] = to; subdirs[to]++; moves++
       fi
  fi;
  loops = false; check()
}

inline exchange(a, b) {
  inside(parent[b], a, loops);
  inside(parent[a], b, other);
  if :: MUTANT == 5 -> other = false :: else fi;
  if
  :: parent[a] == NONE || parent[b] == NONE || a == b || loops || other
  :: else -> w = parent[a]; parent[a] = parent[b]; parent[b] = w; w = 0; moves++
  fi;
  loops = false; other = false; check()
}

proctype client() {
  byte what, to, over, w, steps, d;
  bool loops, other, believed;
end:
  do
  :: moves < MOVES ->
       /* a request, with what the client thinks of it; time passes until it is carried out */
       atomic { moves < MOVES -> select(what : 1 .. 4); select(to : 0 .. 4);
                inside(to, what, believed) }
       if
       :: atomic { moves < MOVES -> select(over : 0 .. 4); move(what, to, over); what = 0; to = 0; over = 0; believed = false }
       :: atomic { moves < MOVES && to != 0 && parent[what] != NONE && parent[to] != NONE ->
            exchange(what, to); what = 0; to = 0; over = 0; believed = false }
       :: atomic { moves == MOVES -> what = 0; to = 0; believed = false; break }
       fi
  :: moves == MOVES -> break
  od
}

init {
  atomic {
    parent[0] = 0; parent[1] = 0; parent[2] = 1; parent[3] = 0; parent[4] = 3;
    subdirs[0] = 2; subdirs[1] = 1; subdirs[3] = 1;
    run client(); run client()
  }
}
