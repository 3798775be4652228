/* The lease of one workspace: grant, renewal, expiry, fencing, restart of the server. Two clients,
 * one server, channels that lose (a send into a full one is dropped, a receiver may throw away).
 * Time is a counter that everybody reads; a client stops one tick early. Written from the protocol's
 * description, without a look at fs/lease.
 *
 * Holds: at most one client may write at any moment; no record of an older epoch is taken after one
 * of a newer; epochs are never granted twice.
 * Mutants: 1 a client counts from the answer's arrival, 2 the server waits too short, 3 appends are
 * not fenced, 4 a restarted server grants at once, 5 an answer to an older question counts.
 */
#ifndef MUTANT
#define MUTANT 0
#endif
#ifndef TICKS
#define TICKS 8
#endif
#ifndef ASKS
#define ASKS 2
#endif
#define SPAN 3
#define CLIENTS 2

mtype = { ACQUIRE, RENEW, RELEASE, APPEND, GRANTED, RENEWED };

chan up = [1] of { mtype, byte, byte, byte };            /* what, who, epoch, question */
chan data[CLIENTS] = [1] of { byte };                    /* epoch of a record, may be very late */
chan down[CLIENTS] = [1] of { mtype, byte, byte };       /* what, epoch, question */

byte now;
byte holder = 255, epoch, until;   /* the server's; epoch is stored before a grant is sent */
byte newest;                       /* epoch of the newest record in the log */
bool granted_before[16];

bool held[CLIENTS];
byte my_epoch[CLIENTS], deadline[CLIENTS], question[CLIENTS], asked[CLIENTS];

#define may_write(i) (held[i] && now < deadline[i])
inline check() { assert(!(may_write(0) && may_write(1))) }

active proctype clock() {
  do
  :: atomic { now < TICKS -> now++; check() }
  :: now == TICKS -> break
  od
}

inline send_up(what, e, q) {
  if
  :: nfull(up) -> up!what, me, e, q
  :: full(up)                       /* lost */
  fi
}

proctype client(byte me) {
  mtype what; byte e, q, crashes;
end:
  do
  :: atomic { !held[me] && question[me] < ASKS ->
       question[me]++; asked[me] = now; send_up(ACQUIRE, 0, question[me]) }
  :: atomic { held[me] && question[me] < ASKS ->
       question[me]++; asked[me] = now; send_up(RENEW, my_epoch[me], question[me]) }
  :: atomic { may_write(me) -> if :: nfull(data[me]) -> data[me]!my_epoch[me] :: full(data[me]) fi }
  :: atomic { held[me] -> held[me] = false; send_up(RELEASE, my_epoch[me], 0) }
  :: atomic { crashes < 1 -> crashes++; held[me] = false }
  :: atomic { down[me]?what, e, q ->
       if
       :: true                      /* lost */
       :: what == GRANTED && e > my_epoch[me] && (q == question[me] || MUTANT == 5) ->
            held[me] = true; my_epoch[me] = e;
            deadline[me] = (MUTANT == 1 -> now : asked[me]) + SPAN - 1
       :: what == RENEWED && held[me] && e == my_epoch[me] && q == question[me] &&
          now < deadline[me] -> deadline[me] = asked[me] + SPAN - 1
       :: else
       fi;
       e = 0; q = 0; check() }
  od
}

inline answer(what, who, q) {
  if
  :: nfull(down[who]) -> down[who]!what, epoch, q
  :: full(down[who])
  fi
}

inline take() {
  if
  :: (holder == who && e == epoch) || MUTANT == 3 -> assert(e >= newest); newest = e
  :: else
  fi;
  who = 0; e = 0
}

active proctype server() {
  mtype what; byte who, e, q, restarts;
end:
  do
  :: atomic { restarts < 1 ->
       restarts++; holder = 255; epoch++;
       until = (MUTANT == 4 -> now : now + SPAN) }
  :: atomic { up?what, who, e, q ->
       if
       :: holder != 255 && now >= until -> holder = 255
       :: else
       fi;
       if
       :: what == ACQUIRE && (holder == who || (holder == 255 && now >= until)) ->
            holder = who; epoch++;
            assert(!granted_before[epoch]); granted_before[epoch] = true;
            until = now + (MUTANT == 2 -> SPAN - 2 : SPAN);
            answer(GRANTED, who, q)
       :: what == RENEW && holder == who && e == epoch ->
            until = now + SPAN; answer(RENEWED, who, q)
       :: what == RELEASE && holder == who && e == epoch -> holder = 255; until = now
       :: else
       fi;
       who = 0; e = 0; q = 0; check() }
  :: atomic { data[0]?e -> who = 0; take(); check() }
  :: atomic { data[1]?e -> who = 1; take(); check() }
  od
}

init { atomic { run client(0); run client(1) } }
