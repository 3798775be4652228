/* The merge queue (core/merge_queue, Builder::merge): changes are stacked, the tip is tested, the first
 * culprit is found by bisection, what stands before it is merged. Any change may be bad; the process may
 * die between moving the branch and recording it. Claims: the branch never holds a bad change, and every
 * good change is merged in the end. */
#define CHANGES 4
#define CRASHES 2

bool bad[CHANGES];
bool merged[CHANGES], out[CHANGES];
byte in_branch = 0;          /* changes the branch holds */
byte recorded = 0;           /* changes the ledger says it holds */
byte crashes = 0;
byte good_count = 0;
bool finished = false;
byte low, high, mid, i, height;
bool ok;

inline stack_is_good(h) {    /* the first h changes that are still in the queue */
  ok = true; i = 0; height = 0;
  do
  :: i < CHANGES && height < h ->
       if
       :: !merged[i] && !out[i] -> height++; ok = ok && !bad[i]
       :: else -> skip
       fi;
       i++
  :: else -> break
  od
}

inline queue_length(n) {
  n = 0; i = 0;
  do
  :: i < CHANGES -> n = n + (!merged[i] && !out[i] -> 1 : 0); i++
  :: else -> break
  od
}

active proctype queue() {
  byte k;
  for (k : 0 .. CHANGES - 1) {
    if
    :: bad[k] = true
    :: bad[k] = false; good_count++
    fi
  }
again:
  if
  :: in_branch != recorded -> recorded = in_branch   /* after a crash: read the branch, then go on */
  :: else -> skip
  fi;
  queue_length(high);
  if
  :: high == 0 -> goto over
  :: else -> skip
  fi;
  stack_is_good(high);
  low = 0;
  if
  :: ok -> low = high
  :: else ->
       do
       :: high - low > 1 ->
            mid = low + (high - low) / 2;
            stack_is_good(mid);
            if
            :: ok -> low = mid
            :: else -> high = mid
            fi
       :: else -> break
       od
  fi;
  /* merge the good ones, one by one */
  k = 0;
  do
  :: low > 0 && k < CHANGES ->
       if
       :: !merged[k] && !out[k] ->
            assert(!bad[k]);
            merged[k] = true; in_branch++; low--;
            if
            :: crashes < CRASHES -> crashes++; goto again
            :: skip
            fi;
            recorded++
       :: else -> skip
       fi;
       k++
  :: else -> break
  od;
  /* the first of what is left is the culprit, if the stack failed */
  if
  :: !ok || high > 0 ->
       k = 0;
       do
       :: k < CHANGES && (merged[k] || out[k]) -> k++
       :: else -> break
       od;
       if
       :: k < CHANGES && bad[k] -> out[k] = true
       :: else -> skip
       fi
  :: else -> skip
  fi;
  goto again;
over:
  for (k : 0 .. CHANGES - 1) {
    assert(!(bad[k] && merged[k]));
    assert(bad[k] || merged[k])
  }
  assert(in_branch == good_count && recorded == in_branch);
  finished = true
}

ltl ends { <> finished }
