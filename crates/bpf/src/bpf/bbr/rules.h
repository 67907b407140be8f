/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the rules that let loss bound the model keep, and what they say of their state.
 */
#pragma once


#define LOSS_THRESH_PERCENT 2
#define BETA_PERCENT 70
#define HEADROOM_PERCENT 15
#define PROBE_WAIT 2000000
#define PROBE_RANDOM_WAIT 1000000
/* What Reno needs between losses at 25 Mbit/s and 30 ms. */
#define MOST_ROUNDS 63
#define STAMPS 4096

enum feedback { NO_FEEDBACK, REFILLING, STARTING, ARRIVING, STOPPING };

/* NEVER and NONE where not set. */
struct bounds {
	u64 bw_lo;
	u32 inflight_lo;
	u32 inflight_hi;
};

/* What was the case after an acknowledgement; in_flight as of the next one. */
struct stamp {
	u32 delivered;
	u32 lost;
	u32 in_flight;
};

struct rules {
	/* The greatest delivery rate of this ProbeBW cycle and the one before. */
	u64 max_before;
	u64 max_now;

	/* Signals of this round. */
	u64 bw_latest;
	u32 inflight_latest;
	u32 loss_events;
	u32 signals_began;
	bool signals_round_start;
	bool loss_in_round;

	struct bounds now;
	struct bounds saved;

	/* When to probe, and how far. */
	u8 feedback;
	bool judging;
	bool went_too_high;
	bool stopped_early;
	u64 phase_began;
	u64 wait;
	u32 rounds;
	u32 growth_round;
	u32 growth_acked;
	/* Packets acknowledged for each packet of growth; NONE for no growth. */
	u32 growth_per_packet;

	u8 before;
	/* The state that loss ended, to return to if the loss was spurious; NO_STATE for none. */
	u8 undo_state;
	bool cubic_detected;
	u32 first_min_rtt;

	/* The stamp of the newest packet acknowledged, and all of them. */
	struct stamp newest;
	u32 last_stamp;
	u32 round_lost;
	struct stamp stamps[STAMPS];
};
#define NO_STATE 0xff

#include "bbr.h"

ALWAYS_INLINE u64 max_bw_of(const struct bbr *bbr)
{
	return max(bbr->rules.max_before, bbr->rules.max_now);
}

ALWAYS_INLINE u64 bw_of(const struct bbr *bbr)
{
	return min(max_bw_of(bbr), bbr->rules.now.bw_lo);
}

ALWAYS_INLINE bool is_raising(const struct bbr *bbr)
{
	return bbr->frame.state == UP;
}

ALWAYS_INLINE u8 phase_before(const struct bbr *bbr)
{
	return bbr->rules.before;
}

ALWAYS_INLINE bool is_probe_bw(u8 state)
{
	return state != STARTUP && state != DRAIN && state != PROBE_RTT;
}

ALWAYS_INLINE bool is_probing(const struct frame *f)
{
	return f->state == STARTUP || f->state == REFILL || f->state == UP;
}
