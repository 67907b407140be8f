/* SPDX-License-Identifier: GPL-2.0 */
/*
 * BBRv2, F-BBRv2 and BBRv3, in which loss bounds the model: the port of crates/cc/src/bbr/{v3,
 * v3/loss, cubic_detector}.rs, with the names of draft-ietf-ccwg-bbr-06. Before this header a program
 * defines PARAMS and V3_PARAMS.
 *
 * v3/send_state.h describes what the kernel does not report. There is no response to ECN: the stock
 * kernel does not report each mark.
 */
#pragma once

#include "v3/probe_bw.h"

/*
 * HandleLostPacket, once per acknowledgement instead of per lost packet. InflightAtLoss, without
 * the packets lost:
 * in_flight + (thresh in_flight - lost) / (1 - thresh).
 */
ALWAYS_INLINE void handle_lost_packets(struct sock *sk, struct bbr *bbr, const struct ack *ack)
{
	struct bbr_version *r = &bbr->version;
	u32 lost = lost_since(r, ack), in_flight = r->tx.in_flight;
	u64 allowed;

	note_loss(r, ack->delivered);
	if (!ack->has_rate || !r->is_bw_probe_sample || !is_loss_too_high(lost, in_flight))
		return;
	in_flight = sat_sub(in_flight, ack->losses);
	lost = sat_sub(lost, ack->losses);
	allowed = sat_sub((u64)in_flight * LOSS_THRESH_PERCENT, (u64)lost * 100);
	handle_inflight_too_high(sk, bbr, ack, in_flight + allowed / (100 - LOSS_THRESH_PERCENT));
}

ALWAYS_INLINE void update_model(struct sock *sk, struct bbr *bbr, const struct ack *ack)
{
	struct bbr_common *f = &bbr->common;
	struct bbr_version *r = &bbr->version;

	read_send_state(bbr, ack);
	if (ack->losses)
		handle_lost_packets(sk, bbr, ack);
	if (is_recovery(r->prev_ca_state) && !is_recovery(ack->ca_state))
		restore_cwnd(sk, f);
	r->prev_ca_state = ack->ca_state;
	f->round_start = false;
	if (ack->has_rate)
		update_round(f, ack);
	r->rounds_since_probe_up += f->round_start;
	update_congestion_signals(sk, bbr, ack);
}

/* CheckStartupHighLoss: a round in recovery with too many loss events and too high a loss rate. */
ALWAYS_INLINE void check_startup_high_loss(struct sock *sk, struct bbr *bbr, const struct ack *ack)
{
	struct bbr_common *f = &bbr->common;
	struct bbr_version *r = &bbr->version;
	u32 events;

	if (f->full_bw_reached)
		return;
	r->loss_events_in_round += ack->losses > 0;
	if (!r->loss_round_start)
		return;
	events = r->loss_events_in_round;
	r->loss_events_in_round = 0;
	if (ack->ca_state != TCP_CA_Recovery || events < V3_PARAMS.startup_full_loss_count || !ack->has_rate ||
	    !is_inflight_too_high(r, ack))
		return;
	if (f->state == STARTUP)
		r->undo_state = STARTUP;
	f->full_bw_reached = true;
	r->bounds.inflight_longterm = max(inflight(sk, bbr, max_bw_of(bbr), GAIN(1), ack->mss),
					  V3_PARAMS.startup_exit_uses_inflight_latest ? r->inflight_latest : 0);
}

/* CheckFullBWReached. */
ALWAYS_INLINE void check_full_bw_reached(struct sock *sk, struct bbr *bbr, const struct ack *ack)
{
	check_startup_high_loss(sk, bbr, ack);
	if (ack->has_rate && bbr->common.round_start && !is_ack_app_limited(&bbr->common, ack))
		update_full_bw(&bbr->common,
				  V3_PARAMS.up_exit_inflight_gain ? max_bw_of(bbr) : ack->rate);
}

ALWAYS_INLINE void advance_latest_delivery_signals(struct bbr *bbr, const struct ack *ack)
{
	struct bbr_version *r = &bbr->version;

	if (ack->has_rate && r->loss_round_start) {
		r->bw_latest = ack->rate;
		r->inflight_latest = ack->rate_delivered;
	}
	write_send_state(bbr, ack);
}

ALWAYS_INLINE void init_version(struct sock *sk, struct bbr *bbr)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct bbr_version *r = &bbr->version;

	/* All but send_states: entries of an earlier use have other counts of packets delivered. */
	__builtin_memset(r, 0, __builtin_offsetof(struct bbr_version, send_states));
	r->bounds.bw_shortterm = NEVER;
	r->bounds.inflight_shortterm = NONE;
	r->bounds.inflight_longterm = NONE;
	r->undo_bounds = r->bounds;
	r->probe_up_acked_per_inc = NONE;
	r->undo_state = NO_STATE;
	r->first_min_rtt = UNKNOWN_RTT;
	r->loss_round_delivered = tp->delivered;
	r->cycle_stamp = tp->tcp_mstamp;
	r->last_send_state = tp->delivered;
	r->send_states[tp->delivered % SEND_STATES].delivered = tp->delivered;
	r->send_states[tp->delivered % SEND_STATES].lost = tp->lost;
}

ALWAYS_INLINE void on_enter_drain(struct bbr *bbr)
{
	reset_congestion_signals(&bbr->version);
}

ALWAYS_INLINE void enter_probe_bw(struct bbr *bbr, const struct ack *ack)
{
	start_probe_bw_down(bbr, ack);
}

ALWAYS_INLINE void on_enter_probe_rtt(struct bbr *bbr, const struct ack *ack)
{
	bbr->version.ack_phase = ACKS_PROBE_STOPPING;
	bbr->common.next_round_delivered = ack->delivered;
}

/* Next is CRUISE, as inflight is below the BDP already. */
ALWAYS_INLINE void on_exit_probe_rtt(struct bbr *bbr, const struct ack *ack)
{
	reset_short_term_model(&bbr->version);
	if (bbr->common.full_bw_reached) {
		start_probe_bw_down(bbr, ack);
		bbr->common.state = PROBE_BW_CRUISE;
	}
}

/* F-BBRv2: CUBIC never lets the queue run empty, so that min_rtt stays above the first one. */
ALWAYS_INLINE void detect_cubic(struct bbr *bbr)
{
	struct bbr_version *r = &bbr->version;
	u32 rtt = bbr->common.min_rtt;

	if (!V3_PARAMS.cubic_min_rtt_ratio || rtt == UNKNOWN_RTT)
		return;
	if (r->first_min_rtt == UNKNOWN_RTT)
		r->first_min_rtt = rtt;
	r->cubic_detected = (u64)rtt << 16 > (u64)r->first_min_rtt * V3_PARAMS.cubic_min_rtt_ratio;
	if (r->cubic_detected && bbr->common.state == PROBE_BW_CRUISE)
		bbr->common.pacing_gain = V3_PARAMS.cruise_pacing_gain;
}

ALWAYS_INLINE void update_gains(struct bbr *bbr)
{
	struct bbr_common *f = &bbr->common;

	f->pacing_gain = GAIN(1);
	f->cwnd_gain = PARAMS.default_cwnd_gain;
	if (f->state == STARTUP) {
		f->pacing_gain = PARAMS.startup_pacing_gain;
		f->cwnd_gain = PARAMS.startup_cwnd_gain;
	} else if (f->state == DRAIN) {
		f->pacing_gain = PARAMS.drain_pacing_gain;
		f->cwnd_gain = PARAMS.startup_cwnd_gain;
	} else if (f->state == PROBE_BW_DOWN) {
		f->pacing_gain = V3_PARAMS.down_pacing_gain;
	} else if (f->state == PROBE_BW_UP) {
		f->pacing_gain = GAIN(1.25);
		f->cwnd_gain = V3_PARAMS.up_cwnd_gain;
	} else if (f->state == PROBE_RTT) {
		f->cwnd_gain = PARAMS.probe_rtt_cwnd_gain;
	}
	detect_cubic(bbr);
}

/* BoundCwndForModel. */
ALWAYS_INLINE u32 bound_cwnd_for_model(const struct bbr *bbr)
{
	const struct bbr_version *r = &bbr->version;
	u32 limit = r->bounds.inflight_longterm;
	u8 state = bbr->common.state;

	if (state == STARTUP || state == DRAIN)
		limit = NONE;
	else if (state == PROBE_BW_CRUISE || state == PROBE_RTT)
		limit = inflight_with_headroom(r);
	return min(limit, r->bounds.inflight_shortterm);
}

/* SetCwnd. */
ALWAYS_INLINE void set_cwnd(struct sock *sk, struct bbr *bbr, const struct ack *ack)
{
	struct bbr_common *f = &bbr->common;
	u64 bw = bw_of(bbr);

	if (ack->acked) {
		u32 packets = bdp(f, bw, f->cwnd_gain, ack->mss) + extra_acked(f, bw, ack->mss);

		packets = quantization_budget(sk, packets, is_probe_bw_up(bbr), ack->mss);
		grow_towards(sk, f, packets, ack->acked, ack->delivered < f->initial_window);
	}
	if (f->state == PROBE_RTT)
		bound_cwnd(sk, probe_rtt_cwnd(f, bw, ack->mss));
	bound_cwnd(sk, bound_cwnd_for_model(bbr));
}

/* SaveStateUponLoss. */
ALWAYS_INLINE void save_state_upon_loss(struct sock *sk, struct bbr *bbr)
{
	bool cut = is_recovery(bbr->version.prev_ca_state) || bbr->common.state == PROBE_RTT;

	save_cwnd(sk, &bbr->common, cut);
	bbr->version.undo_bounds = bbr->version.bounds;
	bbr->version.undo_state = NO_STATE;
}

/* OnEnterRTO. The kernel sets cwnd to inflight + 1. */
ALWAYS_INLINE void on_enter_rto(struct sock *sk, struct bbr *bbr, const struct ack *ack)
{
	struct bbr_version *r = &bbr->version;

	note_loss(r, ack->delivered);
	r->prev_ca_state = TCP_CA_Loss;
	reset_full_bw(&bbr->common, 0);
	if (!is_probing_bw(&bbr->common) && r->bounds.inflight_shortterm == NONE)
		r->bounds.inflight_shortterm = max(bbr->common.prior_cwnd, tcp_sk(sk)->snd_cwnd);
}

/* HandleSpuriousLossDetection. */
ALWAYS_INLINE void handle_spurious_loss_detection(struct sock *sk, struct bbr *bbr, const struct ack *ack)
{
	struct bbr_common *f = &bbr->common;
	struct bbr_version *r = &bbr->version;
	u8 undo = r->undo_state;

	restore_cwnd(sk, f);
	r->loss_in_round = false;
	reset_full_bw(f, 0);
	r->bounds.bw_shortterm = max(r->bounds.bw_shortterm, r->undo_bounds.bw_shortterm);
	r->bounds.inflight_shortterm = max(r->bounds.inflight_shortterm, r->undo_bounds.inflight_shortterm);
	r->bounds.inflight_longterm = max(r->bounds.inflight_longterm, r->undo_bounds.inflight_longterm);
	r->undo_state = NO_STATE;
	if (!V3_PARAMS.restores_undo_state)
		return;
	if (undo == STARTUP && f->state != STARTUP) {
		f->full_bw_reached = false;
		if (f->state != PROBE_RTT)
			f->state = STARTUP;
	} else if (undo == PROBE_BW_UP && f->state != PROBE_BW_UP && f->state != PROBE_RTT) {
		start_probe_bw_refill(bbr, ack);
	}
}

#include "ops.h"
