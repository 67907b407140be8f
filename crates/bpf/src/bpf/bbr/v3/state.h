/* SPDX-License-Identifier: GPL-2.0 */
/*
 * State of BBRv2 and BBRv3.
 */
#pragma once


#define LOSS_THRESH_PERCENT 2
#define BETA_PERCENT 70
#define HEADROOM_PERCENT 15
#define BW_PROBE_BASE_US 2000000
#define BW_PROBE_RAND_US 1000000
/* Rounds between Reno's losses at 25 Mbit/s and 30 ms. */
#define BW_PROBE_MAX_ROUNDS 63
#define SEND_STATES 4096

enum ack_phase { ACKS_INIT, ACKS_REFILLING, ACKS_PROBE_STARTING, ACKS_PROBE_FEEDBACK, ACKS_PROBE_STOPPING };

/* NEVER and NONE where not set. */
struct bounds {
	u64 bw_shortterm;
	u32 inflight_shortterm;
	u32 inflight_longterm;
};

/* State after an acknowledgement; in_flight as of the next one. */
struct send_state {
	u32 delivered;
	u32 lost;
	u32 in_flight;
};

struct bbr_version {
	/* Max delivery rate of this ProbeBW cycle and the one before (MaxBwFilter). */
	u64 max_bw_previous_cycle;
	u64 max_bw_current_cycle;

	/* Signals of this round. */
	u64 bw_latest;
	u32 inflight_latest;
	u32 loss_events_in_round;
	u32 loss_round_delivered;
	bool loss_round_start;
	bool loss_in_round;

	struct bounds bounds;
	struct bounds undo_bounds;

	/* Probing. */
	u8 ack_phase;
	bool is_bw_probe_sample;
	bool prev_probe_too_high;
	bool prev_probe_precautionary;
	u64 cycle_stamp;
	u64 bw_probe_wait;
	u32 rounds_since_probe_up;
	u32 bw_probe_up_rounds;
	u32 bw_probe_up_acked;
	/* NONE for no growth. */
	u32 probe_up_acked_per_inc;

	u8 prev_ca_state;
	/* The state that loss ended, restored if the loss was spurious; NO_STATE for none. */
	u8 undo_state;
	bool cubic_detected;
	u32 first_min_rtt;

	/* The state of the newest packet acknowledged (rs->tx_in_flight in Linux), and the ring. */
	struct send_state tx;
	u32 last_send_state;
	u32 round_lost;
	struct send_state send_states[SEND_STATES];
};
#define NO_STATE 0xff

#include "../bbr.h"

ALWAYS_INLINE u64 max_bw_of(const struct bbr *bbr)
{
	return max(bbr->version.max_bw_previous_cycle, bbr->version.max_bw_current_cycle);
}

ALWAYS_INLINE u64 bw_of(const struct bbr *bbr)
{
	return min(max_bw_of(bbr), bbr->version.bounds.bw_shortterm);
}

ALWAYS_INLINE bool is_probe_bw_up(const struct bbr *bbr)
{
	return bbr->common.state == PROBE_BW_UP;
}

ALWAYS_INLINE bool is_probe_bw(u8 state)
{
	return state != STARTUP && state != DRAIN && state != PROBE_RTT;
}

ALWAYS_INLINE bool is_probing_bw(const struct bbr_common *f)
{
	return f->state == STARTUP || f->state == PROBE_BW_REFILL || f->state == PROBE_BW_UP;
}
