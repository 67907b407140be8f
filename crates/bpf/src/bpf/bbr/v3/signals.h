/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Congestion signals of a round, and the bounds that they set: the port of crates/cc/src/bbr/{v3,
 * v3/loss}.rs.
 */
#pragma once

#include "state.h"

ALWAYS_INLINE void reset_short_term_model(struct bbr_version *r)
{
	r->bounds.bw_shortterm = NEVER;
	r->bounds.inflight_shortterm = NONE;
}

ALWAYS_INLINE u32 inflight_with_headroom(const struct bbr_version *r)
{
	u32 hi = r->bounds.inflight_longterm;

	if (hi == NONE)
		return hi;
	return max(sat_sub(hi, max(((u64)hi * HEADROOM_PERCENT + 99) / 100, 1)), MIN_PIPE_CWND);
}

/* After a round with losses the short-term bounds fall, but not below what it delivered. */
ALWAYS_INLINE void adapt_lower_bounds_from_congestion(struct sock *sk, struct bbr *bbr)
{
	struct bbr_version *r = &bbr->version;
	u64 bw;

	if (!r->loss_in_round)
		return;
	if (r->bounds.inflight_shortterm == NONE)
		r->bounds.inflight_shortterm = tcp_sk(sk)->snd_cwnd;
	bw = r->bounds.bw_shortterm == NEVER ? max_bw_of(bbr) : r->bounds.bw_shortterm;
	r->bounds.bw_shortterm = max(r->bw_latest, bw * BETA_PERCENT / 100);
	r->bounds.inflight_shortterm = max(r->inflight_latest, (u64)r->bounds.inflight_shortterm * BETA_PERCENT / 100);
}

ALWAYS_INLINE void reset_congestion_signals(struct bbr_version *r)
{
	r->bw_latest = 0;
	r->inflight_latest = 0;
	r->loss_events_in_round = 0;
	r->loss_in_round = false;
}

ALWAYS_INLINE void note_loss(struct bbr_version *r, u32 delivered)
{
	if (!r->loss_in_round)
		r->loss_round_delivered = delivered;
	r->loss_in_round = true;
}

ALWAYS_INLINE void update_congestion_signals(struct sock *sk, struct bbr *bbr, const struct ack *ack)
{
	struct bbr_version *r = &bbr->version;

	r->loss_round_start = false;
	if (!ack->has_rate || !ack->acked)
		return;
	r->bw_latest = max(r->bw_latest, ack->rate);
	r->inflight_latest = max(r->inflight_latest, ack->rate_delivered);
	r->loss_round_start = is_reached(ack->prior_delivered, r->loss_round_delivered);
	if (r->loss_round_start)
		r->loss_round_delivered = ack->delivered;
	if (!is_ack_app_limited(&bbr->common, ack) || ack->rate >= max_bw_of(bbr))
		r->max_bw_current_cycle = max(r->max_bw_current_cycle, ack->rate);
	r->loss_in_round |= ack->losses > 0;
	if (!r->loss_round_start)
		return;
	if (!is_probing_bw(&bbr->common))
		adapt_lower_bounds_from_congestion(sk, bbr);
	r->loss_in_round = false;
}
