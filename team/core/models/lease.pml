/* Leases and fencing tokens (Ledger::append, check_fence). Workers may be slow for any time, the lease may
 * expire at any moment and be granted again; a result counts only with the fence of the live lease.
 * Claims: one task is taken in at most once per lease, never from a worker whose lease was lost, and
 * every accepted result is from the worker that holds the lease at that moment. */
#define WORKERS 3
#define LEASES  4            /* grants before the model stops */

byte fence = 0;              /* of the live lease; the ledger's column */
byte holder = 255;           /* worker of the live lease */
bool leased = false;
bool submitted = false;
byte accepted = 0;
byte token[WORKERS];         /* what each worker believes */
bool working[WORKERS];

active proctype orchestrator() {
  byte w;
  do
  :: !leased && !submitted && fence < LEASES ->
       atomic {
         select(w : 0 .. WORKERS - 1);
         if
         :: !working[w] -> fence++; holder = w; leased = true; token[w] = fence; working[w] = true
         :: else -> skip      /* that one is still busy with an old lease */
         fi
       }
  :: leased -> atomic { leased = false; holder = 255 }   /* expired, for whatever reason */
  :: submitted -> break
  :: fence == LEASES && !leased && !submitted -> break
  od
}

proctype worker(byte me) {
  do
  :: working[me] ->
       /* the work itself: any number of steps of others may come in between */
       atomic {
         if
         :: leased && token[me] == fence ->
              assert(holder == me);
              assert(!submitted);
              accepted++;
              submitted = true;
              leased = false
         :: else -> skip      /* too late: refused, nothing changes */
         fi;
         working[me] = false
       }
  :: submitted || fence == LEASES -> break
  od
}

init {
  byte i;
  atomic {
    for (i : 0 .. WORKERS - 1) { run worker(i) }
  }
}

ltl once { [] (accepted <= 1) }
