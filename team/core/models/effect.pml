/* The effect protocol (Strand::once): intent recorded, act, outcome recorded; a crash may come between any
 * two steps, and the strand starts again from its record. Claims: a paid effect is never sent without
 * being booked, at most one booking in doubt a crash; an external effect that looks first happens once;
 * a workspace effect always starts from the snapshot. */
#define CRASHES 2

byte crashes = 0;
/* the record */
bool intended = false, done = false;
byte booked_sure = 0, booked_doubt = 0;
/* the world */
byte paid_sent = 0, external_done = 0;
bool half_done = false;      /* a workspace in the middle of a change */
bool finished = false;

inline maybe_crash() {
  if
  :: crashes < CRASHES -> crashes++; goto restart
  :: skip
  fi
}

/* One strand that does the same kind of effect as `kind`: 0 paid, 1 external, 2 workspace. */
proctype strand(byte kind) {
restart:
  if
  :: done -> goto over
  :: intended && !done ->
       /* recovery by class */
       if
       :: kind == 0 -> atomic { booked_doubt++; intended = false }
       :: kind == 1 -> skip
       :: kind == 2 -> half_done = false
       fi;
       maybe_crash()
  :: else -> skip
  fi;
  if
  :: !intended -> intended = true
  :: else -> skip
  fi;
  maybe_crash();
  if
  :: kind == 0 -> paid_sent++
  :: kind == 1 ->
       if
       :: external_done == 0 -> external_done++
       :: else -> skip       /* looked first: it is there */
       fi
  :: kind == 2 -> assert(!half_done); half_done = true; maybe_crash(); half_done = false
  fi;
  maybe_crash();
  atomic {
    done = true;
    if
    :: kind == 0 -> booked_sure++
    :: else -> skip
    fi
  }
  maybe_crash();
  goto restart;
over:
  assert(kind != 0 || (booked_sure == 1 && paid_sent <= booked_sure + booked_doubt));
  assert(booked_doubt <= crashes);
  assert(kind != 1 || external_done == 1);
  assert(!half_done);
  finished = true
}

init {
  byte kind;
  select(kind : 0 .. 2);
  run strand(kind)
}

ltl ends { <> finished }
