/* SPDX-License-Identifier: GPL-2.0 */
/*
 * ProbeBW's phases: the port of crates/cc/src/bbr/v3/probe_bw.rs.
 */
#pragma once

#include "signals.h"
#include "send_state.h"

ALWAYS_INLINE void start_probe_bw_down(struct bbr *bbr, const struct ack *ack)
{
	struct bbr_version *r = &bbr->version;

	reset_congestion_signals(r);
	r->probe_up_acked_per_inc = NONE;
	r->rounds_since_probe_up = bpf_get_prandom_u32() >> 31;
	r->bw_probe_wait = BW_PROBE_BASE_US + ((u64)bpf_get_prandom_u32() * BW_PROBE_RAND_US >> 32);
	r->cycle_stamp = ack->now;
	r->ack_phase = ACKS_PROBE_STOPPING;
	bbr->common.next_round_delivered = ack->delivered;
	bbr->common.state = PROBE_BW_DOWN;
}

ALWAYS_INLINE void start_probe_bw_refill(struct bbr *bbr, const struct ack *ack)
{
	struct bbr_version *r = &bbr->version;

	reset_short_term_model(r);
	r->bw_probe_up_rounds = 0;
	r->bw_probe_up_acked = 0;
	r->prev_probe_precautionary = false;
	r->ack_phase = ACKS_REFILLING;
	bbr->common.next_round_delivered = ack->delivered;
	bbr->common.state = PROBE_BW_REFILL;
}

/* In UP inflight_longterm grows by 1, 2, 4, ... packets a round. */
ALWAYS_INLINE void raise_inflight_longterm_slope(struct bbr_version *r, u32 cwnd)
{
	r->probe_up_acked_per_inc = max(cwnd >> (r->bw_probe_up_rounds & 31), 1);
	r->bw_probe_up_rounds = min(r->bw_probe_up_rounds + 1, 30);
}

ALWAYS_INLINE void start_probe_bw_up(struct sock *sk, struct bbr *bbr, const struct ack *ack)
{
	struct bbr_version *r = &bbr->version;

	r->cycle_stamp = ack->now;
	r->is_bw_probe_sample = true;
	r->ack_phase = ACKS_PROBE_STARTING;
	raise_inflight_longterm_slope(r, tcp_sk(sk)->snd_cwnd);
	bbr->common.next_round_delivered = ack->delivered;
	reset_full_bw(&bbr->common, ack->has_rate ? ack->rate : 0);
	bbr->common.state = PROBE_BW_UP;
}

/* TargetInflight: min(bdp, cwnd). */
ALWAYS_INLINE u32 target_inflight(struct sock *sk, struct bbr *bbr, u32 mss)
{
	return min(inflight(sk, bbr, bw_of(bbr), GAIN(1), mss), tcp_sk(sk)->snd_cwnd);
}

/* HandleInflightTooHigh: once per probe, lowers inflight_longterm to `safe` and stops probing. */
ALWAYS_INLINE void handle_inflight_too_high(struct sock *sk, struct bbr *bbr, const struct ack *ack, u32 safe)
{
	struct bbr_version *r = &bbr->version;
	u64 floor = (u64)target_inflight(sk, bbr, ack->mss) * BETA_PERCENT / 100;

	r->prev_probe_too_high = true;
	r->is_bw_probe_sample = false;
	if (!is_ack_app_limited(&bbr->common, ack))
		r->bounds.inflight_longterm = max(safe, floor);
	if (bbr->common.state == PROBE_BW_UP) {
		r->undo_state = PROBE_BW_UP;
		start_probe_bw_down(bbr, ack);
	}
}

/* Whether inflight_longterm limits the flow. */
ALWAYS_INLINE bool is_inflight_longterm_limiting(struct sock *sk, const struct bbr *bbr, const struct ack *ack)
{
	return ack->window_full && tcp_sk(sk)->snd_cwnd >= bbr->version.bounds.inflight_longterm;
}

ALWAYS_INLINE u32 probe_inflight_longterm_upward(struct bbr_version *r, u32 acked, u32 cwnd, bool round_start)
{
	u32 packets;

	r->bw_probe_up_acked += acked;
	packets = r->bw_probe_up_acked / max(r->probe_up_acked_per_inc, 1);
	r->bw_probe_up_acked -= packets * r->probe_up_acked_per_inc;
	if (round_start)
		raise_inflight_longterm_slope(r, cwnd);
	return packets;
}

/* Advances ack_phase. Returns whether the feedback of a probe is complete. */
ALWAYS_INLINE bool update_ack_phase(struct bbr_version *r, bool round_start)
{
	if (!round_start)
		return false;
	if (r->ack_phase == ACKS_PROBE_STARTING)
		r->ack_phase = ACKS_PROBE_FEEDBACK;
	if (r->ack_phase != ACKS_PROBE_STOPPING)
		return false;
	r->is_bw_probe_sample = false;
	r->ack_phase = ACKS_INIT;
	return true;
}

/* AdaptLongTermModel. Returns whether the state changed. */
ALWAYS_INLINE bool adapt_long_term_model(struct sock *sk, struct bbr *bbr, const struct ack *ack)
{
	struct bbr_common *f = &bbr->common;
	struct bbr_version *r = &bbr->version;

	if (update_ack_phase(r, f->round_start) && is_probe_bw(f->state)) {
		if (!is_ack_app_limited(f, ack) && r->max_bw_current_cycle) {
			r->max_bw_previous_cycle = r->max_bw_current_cycle;
			r->max_bw_current_cycle = 0;
		}
		/* The probe reached the earlier limit without loss. */
		if (r->prev_probe_precautionary && !r->prev_probe_too_high) {
			start_probe_bw_refill(bbr, ack);
			return true;
		}
	}
	/* Without a rate sample, tx is that of an earlier acknowledgement. */
	if (ack->has_rate && is_inflight_too_high(r, ack)) {
		if (r->is_bw_probe_sample)
			handle_inflight_too_high(sk, bbr, ack, r->tx.in_flight);
		return false;
	}
	if (r->bounds.inflight_longterm == NONE)
		return false;
	if (ack->has_rate)
		r->bounds.inflight_longterm = max(r->bounds.inflight_longterm, r->tx.in_flight);
	if (f->state == PROBE_BW_UP && is_inflight_longterm_limiting(sk, bbr, ack))
		r->bounds.inflight_longterm += probe_inflight_longterm_upward(r, ack->acked, tcp_sk(sk)->snd_cwnd, f->round_start);
	return false;
}

ALWAYS_INLINE bool is_time_to_probe_bw(struct sock *sk, struct bbr *bbr, const struct ack *ack)
{
	struct bbr_version *r = &bbr->version;

	return ack->now > r->cycle_stamp + r->bw_probe_wait ||
	       r->rounds_since_probe_up >= min(target_inflight(sk, bbr, ack->mss), BW_PROBE_MAX_ROUNDS);
}

ALWAYS_INLINE bool is_time_to_cruise(struct sock *sk, struct bbr *bbr, const struct ack *ack, u32 in_net)
{
	return in_net <= inflight_with_headroom(&bbr->version) &&
	       in_net <= inflight(sk, bbr, max_bw_of(bbr), GAIN(1), ack->mss);
}

ALWAYS_INLINE bool is_time_to_go_down(struct sock *sk, struct bbr *bbr, const struct ack *ack, u32 in_net)
{
	struct bbr_common *f = &bbr->common;
	struct bbr_version *r = &bbr->version;

	if (r->prev_probe_too_high && in_net >= r->bounds.inflight_longterm) {
		r->prev_probe_precautionary = true;
		return true;
	}
	if (V3_PARAMS.up_exit_inflight_gain)
		return f->min_rtt != UNKNOWN_RTT && ack->now > r->cycle_stamp + f->min_rtt &&
		       in_net >= inflight(sk, bbr, max_bw_of(bbr), V3_PARAMS.up_exit_inflight_gain, ack->mss);
	if (is_inflight_longterm_limiting(sk, bbr, ack)) {
		reset_full_bw(f, ack->has_rate ? ack->rate : 0);
		return false;
	}
	return f->full_bw_now;
}

/* UpdateProbeBWCyclePhase. */
ALWAYS_INLINE void update_probe_bw_cycle_phase(struct sock *sk, struct bbr *bbr, const struct ack *ack)
{
	struct bbr_common *f = &bbr->common;
	u32 in_net;

	if (!f->full_bw_reached || adapt_long_term_model(sk, bbr, ack))
		return;
	in_net = packets_in_net_at_edt(sk, f, ack->prior_in_flight, bw_of(bbr), ack->mss);
	if (f->state == PROBE_BW_DOWN || f->state == PROBE_BW_CRUISE) {
		if (is_time_to_probe_bw(sk, bbr, ack))
			start_probe_bw_refill(bbr, ack);
		else if (f->state == PROBE_BW_DOWN && is_time_to_cruise(sk, bbr, ack, in_net))
			f->state = PROBE_BW_CRUISE;
	} else if (f->state == PROBE_BW_REFILL) {
		if (f->round_start)
			start_probe_bw_up(sk, bbr, ack);
	} else if (f->state == PROBE_BW_UP && is_time_to_go_down(sk, bbr, ack, in_net)) {
		bbr->version.prev_probe_too_high = false;
		start_probe_bw_down(bbr, ack);
	}
}
