/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a round told, and the bounds that it sets to the model: the twin of
 * crates/cc/src/bbr/{signals, bounds}.rs.
 */
#pragma once

#include "rules.h"

ALWAYS_INLINE void forget_short_term(struct rules *r)
{
	r->now.bw_lo = NEVER;
	r->now.inflight_lo = NONE;
}

/* A probe, or Startup, found that more than `packets` in flight is too much. */
ALWAYS_INLINE void set_long_term(struct rules *r, u32 packets)
{
	r->now.inflight_hi = max(packets, MIN_CWND);
}

ALWAYS_INLINE u32 with_headroom(const struct rules *r)
{
	u32 hi = r->now.inflight_hi;

	if (hi == NONE)
		return hi;
	return max(less(hi, max(((u64)hi * HEADROOM_PERCENT + 99) / 100, 1)), MIN_CWND);
}

/* A round with losses is over: the short-term bounds fall, but not below what it delivered. */
ALWAYS_INLINE void lower_short_term(struct sock *sk, struct bbr *bbr)
{
	struct rules *r = &bbr->rules;
	u64 bw;

	if (!r->loss_in_round)
		return;
	if (r->now.inflight_lo == NONE)
		r->now.inflight_lo = tcp_sk(sk)->snd_cwnd;
	bw = r->now.bw_lo == NEVER ? max_bw_of(bbr) : r->now.bw_lo;
	r->now.bw_lo = max(r->bw_latest, bw * BETA_PERCENT / 100);
	r->now.inflight_lo = max(r->inflight_latest, (u64)r->now.inflight_lo * BETA_PERCENT / 100);
}

ALWAYS_INLINE void reset_signals(struct rules *r)
{
	r->bw_latest = 0;
	r->inflight_latest = 0;
	r->loss_events = 0;
	r->loss_in_round = false;
}

ALWAYS_INLINE void note_loss(struct rules *r, u32 delivered)
{
	if (!r->loss_in_round)
		r->signals_began = delivered;
	r->loss_in_round = true;
}

ALWAYS_INLINE void update_signals(struct sock *sk, struct bbr *bbr, const struct ack *ack)
{
	struct rules *r = &bbr->rules;

	r->signals_round_start = false;
	if (!ack->rated || !ack->acked)
		return;
	r->bw_latest = max(r->bw_latest, ack->rate);
	r->inflight_latest = max(r->inflight_latest, ack->rate_delivered);
	r->signals_round_start = is_reached(ack->prior_delivered, r->signals_began);
	if (r->signals_round_start)
		r->signals_began = ack->delivered;
	if (!is_ack_limited(&bbr->frame, ack) || ack->rate >= max_bw_of(bbr))
		r->max_now = max(r->max_now, ack->rate);
	r->loss_in_round |= ack->losses > 0;
	if (!r->signals_round_start)
		return;
	if (!is_probing(&bbr->frame))
		lower_short_term(sk, bbr);
	r->loss_in_round = false;
}
