/* The world around the design's protocol: three writes, two crashes at any point, memory gone after
   each. WRONG swaps the last two steps, to show that a broken protocol is found. */
byte waiting = 7, pending, taken, disk, acked, crashes;
bool crashed;

#include "commit.pml"

inline wrong_round() {
  do
  :: waiting & 1 -> waiting = waiting & ~1; append(1)
  :: waiting & 2 -> waiting = waiting & ~2; append(2)
  :: waiting & 4 -> waiting = waiting & ~4; append(4)
  :: break
  od;
  reply();
  sync_log()
}

active proctype server() {
again:
  {
    do
    :: waiting != 0 ->
#ifdef WRONG
      wrong_round()
#else
      one_round()
#endif
    :: waiting == 0 && pending == 0 && taken == 0 -> break
    od
  } unless { crashed };
end_idle:
  atomic { crashed -> pending = 0; taken = 0; crashed = false };
  goto again
}

active proctype power() {
end:
  do
  :: crashes < 2 -> atomic { crashed = true; crashes++ }; !crashed
  od
}

/* An answered write that is not on the disk. */
active proctype judge() {
end:
  atomic { (acked & ~disk) != 0 -> assert(false) }
}
