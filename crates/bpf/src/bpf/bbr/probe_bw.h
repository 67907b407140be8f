/* SPDX-License-Identifier: GPL-2.0 */
/*
 * ProbeBW's phases: the twin of crates/cc/src/bbr/{probe_bw, bounded/phases}.rs.
 */
#pragma once

#include "signals.h"
#include "stamps.h"

ALWAYS_INLINE void start_down(struct bbr *bbr, const struct ack *ack)
{
	struct rules *r = &bbr->rules;

	reset_signals(r);
	r->growth_per_packet = NONE;
	r->rounds = bpf_get_prandom_u32() >> 31;
	r->wait = PROBE_WAIT + ((u64)bpf_get_prandom_u32() * PROBE_RANDOM_WAIT >> 32);
	r->phase_began = ack->now;
	r->feedback = STOPPING;
	bbr->frame.round_began = ack->delivered;
	bbr->frame.state = DOWN;
}

ALWAYS_INLINE void start_refill(struct bbr *bbr, const struct ack *ack)
{
	struct rules *r = &bbr->rules;

	forget_short_term(r);
	r->growth_round = 0;
	r->growth_acked = 0;
	r->stopped_early = false;
	r->feedback = REFILLING;
	bbr->frame.round_began = ack->delivered;
	bbr->frame.state = REFILL;
}

/* In UP inflight_hi grows by 1, 2, 4, ... packets a round. */
ALWAYS_INLINE void steepen(struct rules *r, u32 cwnd)
{
	r->growth_per_packet = max(cwnd >> (r->growth_round & 31), 1);
	r->growth_round = min(r->growth_round + 1, 30);
}

ALWAYS_INLINE void start_up(struct sock *sk, struct bbr *bbr, const struct ack *ack)
{
	struct rules *r = &bbr->rules;

	r->phase_began = ack->now;
	r->judging = true;
	r->feedback = STARTING;
	steepen(r, tcp_sk(sk)->snd_cwnd);
	bbr->frame.round_began = ack->delivered;
	restart_full_pipe(&bbr->frame, ack->rated ? ack->rate : 0);
	bbr->frame.state = UP;
}

/* What the flow wants in flight: the BDP, unless congestion cut the window. */
ALWAYS_INLINE u32 target_inflight(struct sock *sk, struct bbr *bbr, u32 mss)
{
	return min(inflight(sk, bbr, bw_of(bbr), GAIN(1), mss), tcp_sk(sk)->snd_cwnd);
}

/* HandleInflightTooHigh: once a probe, lowers inflight_hi to `safe` and stops probing. */
ALWAYS_INLINE void on_too_high(struct sock *sk, struct bbr *bbr, const struct ack *ack, u32 safe)
{
	struct rules *r = &bbr->rules;
	u64 least = (u64)target_inflight(sk, bbr, ack->mss) * BETA_PERCENT / 100;

	r->went_too_high = true;
	r->judging = false;
	if (!is_ack_limited(&bbr->frame, ack))
		set_long_term(r, max(safe, least));
	if (bbr->frame.state == UP) {
		r->undo_state = UP;
		start_down(bbr, ack);
	}
}

/* Whether inflight_hi is what limits the flow. */
ALWAYS_INLINE bool is_at_long_term_bound(struct sock *sk, const struct bbr *bbr, const struct ack *ack)
{
	return ack->cwnd_limited && tcp_sk(sk)->snd_cwnd >= bbr->rules.now.inflight_hi;
}

ALWAYS_INLINE u32 grow(struct rules *r, u32 acked, u32 cwnd, bool round_start)
{
	u32 packets;

	r->growth_acked += acked;
	packets = r->growth_acked / max(r->growth_per_packet, 1);
	r->growth_acked -= packets * r->growth_per_packet;
	if (round_start)
		steepen(r, cwnd);
	return packets;
}

/* Tells of an acknowledgement. Returns whether with it the feedback of a probe is complete. */
ALWAYS_INLINE bool follow_feedback(struct rules *r, bool round_start)
{
	if (!round_start)
		return false;
	if (r->feedback == STARTING)
		r->feedback = ARRIVING;
	if (r->feedback != STOPPING)
		return false;
	r->judging = false;
	r->feedback = NO_FEEDBACK;
	return true;
}

/* AdaptLongTermModel: moves inflight_hi with a probe's feedback. Whether it changed the state. */
ALWAYS_INLINE bool adapt_long_term(struct sock *sk, struct bbr *bbr, const struct ack *ack)
{
	struct frame *f = &bbr->frame;
	struct rules *r = &bbr->rules;

	if (!ack->rated)
		return false;
	if (follow_feedback(r, f->round_start) && is_probe_bw(f->state)) {
		if (!is_ack_limited(f, ack) && r->max_now) {
			r->max_before = r->max_now;
			r->max_now = 0;
		}
		/* The probe went as far as the one that had gone too high, and did no harm. */
		if (r->stopped_early && !r->went_too_high) {
			start_refill(bbr, ack);
			return true;
		}
	}
	if (is_too_high(r, ack)) {
		if (r->judging)
			on_too_high(sk, bbr, ack, r->newest.in_flight);
		return false;
	}
	if (r->now.inflight_hi == NONE)
		return false;
	r->now.inflight_hi = max(r->now.inflight_hi, r->newest.in_flight);
	if (f->state == UP && is_at_long_term_bound(sk, bbr, ack))
		r->now.inflight_hi += grow(r, ack->acked, tcp_sk(sk)->snd_cwnd, f->round_start);
	return false;
}

ALWAYS_INLINE bool is_probe_due(struct sock *sk, struct bbr *bbr, const struct ack *ack)
{
	struct rules *r = &bbr->rules;

	return ack->now > r->phase_began + r->wait ||
	       r->rounds >= min(target_inflight(sk, bbr, ack->mss), MOST_ROUNDS);
}

ALWAYS_INLINE bool is_time_to_cruise(struct sock *sk, struct bbr *bbr, const struct ack *ack, u32 in_net)
{
	return in_net <= with_headroom(&bbr->rules) &&
	       in_net <= inflight(sk, bbr, max_bw_of(bbr), GAIN(1), ack->mss);
}

ALWAYS_INLINE bool is_time_to_go_down(struct sock *sk, struct bbr *bbr, const struct ack *ack, u32 in_net)
{
	struct frame *f = &bbr->frame;
	struct rules *r = &bbr->rules;

	if (r->went_too_high && in_net >= r->now.inflight_hi) {
		r->stopped_early = true;
		return true;
	}
	if (CAUTION.up_ends_inflight)
		return f->min_rtt != UNKNOWN_RTT && ack->now > r->phase_began + f->min_rtt &&
		       in_net >= inflight(sk, bbr, max_bw_of(bbr), CAUTION.up_ends_inflight, ack->mss);
	if (is_at_long_term_bound(sk, bbr, ack)) {
		restart_full_pipe(f, ack->rated ? ack->rate : 0);
		return false;
	}
	return f->full_now;
}

/* UpdateProbeBWCyclePhase. */
ALWAYS_INLINE void update_probe_bw(struct sock *sk, struct bbr *bbr, const struct ack *ack)
{
	struct frame *f = &bbr->frame;
	u32 in_net;

	if (!f->full_ever || adapt_long_term(sk, bbr, ack))
		return;
	in_net = in_network(sk, f, ack->prior_in_flight, bw_of(bbr), ack->mss);
	if (f->state == DOWN || f->state == CRUISE) {
		if (is_probe_due(sk, bbr, ack))
			start_refill(bbr, ack);
		else if (f->state == DOWN && is_time_to_cruise(sk, bbr, ack, in_net))
			f->state = CRUISE;
	} else if (f->state == REFILL) {
		if (f->round_start)
			start_up(sk, bbr, ack);
	} else if (f->state == UP && is_time_to_go_down(sk, bbr, ack, in_net)) {
		bbr->rules.went_too_high = false;
		start_down(bbr, ack);
	}
}
