/* A writer that holds the lease acknowledges changes into its own journal and sends them behind. It
 * may die and come back, hand over when it is asked, or be shut out when it is silent; then another
 * writer goes on under a new workspace number, and what the server never saw becomes a fork. Answers
 * of the server may get lost. A's records are 1, 2, 3 ...; the server's log is a prefix of A's, then
 * B's. Written from the description of the protocol.
 *
 * Holds: a change that A acknowledged is in A's journal, in the main history or in the fork; never in
 * both histories; nothing of A follows anything of B in the main history; no two pieces of data of
 * both histories carry the same number.
 * Mutants: 1 the journal is cleared before the fork is stored, 2 appends are not fenced, 3 the fork
 * starts at the head that A knows of, 4 a hand-over gives the lease back before the flush, 5 the
 * workspace keeps its number when a writer is shut out, 6 a restarted A writes on without asking.
 */
#ifndef MUTANT
#define MUTANT 0
#endif
#ifndef RECORDS
#define RECORDS 4
#endif

bool a_up = true, a_holds = true, a_fenced, a_over;
byte a_last;            /* acknowledged, in the journal */
byte a_known;           /* head that A knows the server has */
bool journal = true;    /* A's journal still holds what it acknowledged */

bool lease_a = true;    /* the server's view */
bool clean;             /* A gave the lease back */
byte main_a;            /* records of A in the main history */
byte main_b;            /* records of B behind them */
byte number_b;          /* workspace number under which B writes; A's is 1 */
bool b_holds;
byte base = 255;        /* where A's history ends, once it was shut out */
byte fork_upto;         /* records base + 1 .. fork_upto are in the fork */
byte fork_from = 255;
bool fork_done;
byte crashes, handovers;

inline check() {
  /* nothing acknowledged is lost */
  assert(journal || a_last <= main_a || (fork_from <= main_a && a_last <= fork_upto) ||
         (base != 255 && a_last <= base));
  /* the fork begins where the main history's part of A ends */
  assert(fork_from == 255 || fork_from == main_a);
  /* data numbers: the fork's are of A's number */
  assert(!(fork_upto > 0 && fork_from != 255 && main_b > 0 && number_b == 1))
}

active proctype A() {
  byte sent;
end:
  do
  :: atomic { a_up && a_holds && !a_over && a_last < RECORDS -> a_last++; check() }
  :: atomic { a_up && !a_over && a_known < a_last -> sent = a_known + 1;     /* append */
       if
       :: (lease_a && !b_holds) || MUTANT == 2 ->
            assert(main_b == 0 || sent <= main_a);
            if :: sent == main_a + 1 -> main_a = sent :: else fi;
            if
            :: a_known = sent
            :: true                                                          /* answer lost */
            fi
       :: else
       fi;
       sent = 0; check() }
  :: atomic { a_up && crashes < 2 -> crashes++; a_up = false; a_holds = false }
  :: atomic { !a_up && journal ->                                            /* comes back */
       a_up = true; a_known = 0;
       if
       :: lease_a && !b_holds -> a_holds = true; a_known = main_a            /* granted again */
       :: else -> if :: MUTANT == 6 -> a_holds = true :: else -> a_fenced = (base != 255) fi
       fi;
       check() }
  :: atomic { a_up && !a_holds && !b_holds && lease_a && base == 255 && !clean ->
       a_holds = true; a_known = main_a }                                    /* regained in time */
  :: atomic { a_holds -> a_holds = false }                                   /* its time is over */
  :: atomic { a_up && !a_fenced && base != 255 -> a_fenced = true; a_holds = false }
  :: atomic { a_up && a_holds && handovers < 1 && !a_over -> handovers++; a_over = true;
       if :: MUTANT == 4 -> lease_a = false; clean = true; a_holds = false :: else fi; check() }
  :: atomic { a_up && a_over && a_holds && a_known < a_last && lease_a ->
       sent = a_known + 1;
       if :: sent == main_a + 1 -> main_a = sent :: else fi;
       a_known = sent; sent = 0; check() }
  :: atomic { a_up && a_over && a_holds && a_known == a_last && lease_a ->
       lease_a = false; clean = true; a_holds = false; journal = false; check() }
  :: atomic { a_up && a_fenced && journal && !fork_done ->                   /* rescue, a record a time */
       if :: MUTANT == 1 -> journal = false :: else fi;
       if
       :: fork_from == 255 && a_last > (MUTANT == 3 -> a_known : base) ->
            fork_from = (MUTANT == 3 -> a_known : base); fork_upto = fork_from + 1
       :: fork_from != 255 && fork_upto < a_last -> fork_upto++
       :: else -> fork_done = true; journal = false
       fi;
       check() }
  od
}

active proctype B() {
end:
  do
  :: atomic { !b_holds && base == 255 && !clean && !a_holds ->               /* A is silent: shut out */
       b_holds = true; lease_a = false; base = main_a;
       number_b = (MUTANT == 5 -> 1 : 2); check() }
  :: atomic { !b_holds && clean && MUTANT != 4 -> b_holds = true; number_b = 2; check() }
  :: atomic { !b_holds && clean && MUTANT == 4 ->
       b_holds = true; number_b = 1; assert(main_a == a_last) }
  :: atomic { b_holds && main_b < 2 -> main_b++; check() }
  od
}
