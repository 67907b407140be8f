/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Rules that let loss bound the model: BBRv2, F-BBRv2 and BBRv3. The twin of
 * crates/cc/src/bbr/{bounded, bounded/losses, assertion}.rs, written along draft-ietf-ccwg-bbr-06,
 * whose names the comments have. Before this header a program defines PARAMS and CAUTION.
 *
 * stamps.h says where the kernel tells less than the twin is told. ECN is not heeded: the stock kernel
 * does not tell of each mark.
 */
#pragma once

#include "probe_bw.h"

/*
 * HandleLostPacket, once for the packets that an acknowledgement shows lost: judges the flight that
 * led up to them, if it was a probe. InflightAtLoss, without those packets:
 * in_flight + (thresh in_flight - lost) / (1 - thresh).
 */
ALWAYS_INLINE void on_losses(struct sock *sk, struct bbr *bbr, const struct ack *ack)
{
	struct rules *r = &bbr->rules;
	u32 lost = lost_since(r, ack), in_flight = r->newest.in_flight;
	u64 allowed;

	note_loss(r, ack->delivered);
	if (!ack->rated || !r->judging || !is_loss_too_high(lost, in_flight))
		return;
	in_flight = less(in_flight, ack->losses);
	lost = less(lost, ack->losses);
	allowed = less((u64)in_flight * LOSS_THRESH_PERCENT, (u64)lost * 100);
	on_too_high(sk, bbr, ack, in_flight + allowed / (100 - LOSS_THRESH_PERCENT));
}

ALWAYS_INLINE void update_model(struct sock *sk, struct bbr *bbr, const struct ack *ack)
{
	struct frame *f = &bbr->frame;
	struct rules *r = &bbr->rules;

	read_stamp(bbr, ack);
	if (ack->losses)
		on_losses(sk, bbr, ack);
	if (is_recovery(r->before) && !is_recovery(ack->phase))
		restore_cwnd(sk, f);
	r->before = ack->phase;
	f->round_start = false;
	if (ack->rated)
		update_round(f, ack);
	r->rounds += f->round_start;
	update_signals(sk, bbr, ack);
}

/* Startup ends on loss when a round of recovery brought losses too often and too many. */
ALWAYS_INLINE void check_startup_loss(struct sock *sk, struct bbr *bbr, const struct ack *ack)
{
	struct frame *f = &bbr->frame;
	struct rules *r = &bbr->rules;
	u32 events;

	if (f->full_ever)
		return;
	r->loss_events += ack->losses > 0;
	if (!r->signals_round_start)
		return;
	events = r->loss_events;
	r->loss_events = 0;
	if (ack->phase != TCP_CA_Recovery || events < CAUTION.full_loss_count || !ack->rated ||
	    !is_too_high(r, ack))
		return;
	if (f->state == STARTUP)
		r->undo_state = STARTUP;
	f->full_ever = true;
	set_long_term(r, max(inflight(sk, bbr, max_bw_of(bbr), GAIN(1), ack->mss),
			     CAUTION.startup_keeps_delivered ? r->inflight_latest : 0));
}

/* CheckFullBWReached. */
ALWAYS_INLINE void update_full_pipe(struct sock *sk, struct bbr *bbr, const struct ack *ack)
{
	check_startup_loss(sk, bbr, ack);
	if (ack->rated && bbr->frame.round_start && !is_ack_limited(&bbr->frame, ack))
		observe_full_pipe(&bbr->frame,
				  CAUTION.up_ends_inflight ? max_bw_of(bbr) : ack->rate);
}

ALWAYS_INLINE void end_ack(struct bbr *bbr, const struct ack *ack)
{
	struct rules *r = &bbr->rules;

	if (ack->rated && r->signals_round_start) {
		r->bw_latest = ack->rate;
		r->inflight_latest = ack->rate_delivered;
	}
	write_stamp(bbr, ack);
}

ALWAYS_INLINE void begin_rules(struct sock *sk, struct bbr *bbr)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct rules *r = &bbr->rules;

	/* All but the stamps, old ones of which do no harm: packets are counted on. */
	__builtin_memset(r, 0, __builtin_offsetof(struct rules, stamps));
	r->now.bw_lo = NEVER;
	r->now.inflight_lo = NONE;
	r->now.inflight_hi = NONE;
	r->saved = r->now;
	r->growth_per_packet = NONE;
	r->undo_state = NO_STATE;
	r->first_min_rtt = UNKNOWN_RTT;
	r->signals_began = tp->delivered;
	r->phase_began = tp->tcp_mstamp;
	r->last_stamp = tp->delivered;
	r->stamps[tp->delivered % STAMPS].delivered = tp->delivered;
	r->stamps[tp->delivered % STAMPS].lost = tp->lost;
}

ALWAYS_INLINE void on_drain(struct bbr *bbr)
{
	reset_signals(&bbr->rules);
}

ALWAYS_INLINE void enter_probe_bw(struct bbr *bbr, const struct ack *ack)
{
	start_down(bbr, ack);
}

ALWAYS_INLINE void on_probe_rtt(struct bbr *bbr, const struct ack *ack)
{
	bbr->rules.feedback = STOPPING;
	bbr->frame.round_began = ack->delivered;
}

/* Next is CRUISE, for what is in flight is below the BDP already. */
ALWAYS_INLINE void after_probe_rtt(struct bbr *bbr, const struct ack *ack)
{
	forget_short_term(&bbr->rules);
	if (bbr->frame.full_ever) {
		start_down(bbr, ack);
		bbr->frame.state = CRUISE;
	}
}

/* F-BBRv2: CUBIC never lets the queue run empty, so that min_rtt stays above the first one. */
ALWAYS_INLINE void watch_for_cubic(struct bbr *bbr)
{
	struct rules *r = &bbr->rules;
	u32 rtt = bbr->frame.min_rtt;

	if (!CAUTION.cubic_threshold || rtt == UNKNOWN_RTT)
		return;
	if (r->first_min_rtt == UNKNOWN_RTT)
		r->first_min_rtt = rtt;
	r->cubic_detected = (u64)rtt << 16 > (u64)r->first_min_rtt * CAUTION.cubic_threshold;
	if (r->cubic_detected && bbr->frame.state == CRUISE)
		bbr->frame.pacing_gain = CAUTION.cruise_pacing_gain;
}

ALWAYS_INLINE void set_gains(struct bbr *bbr)
{
	struct frame *f = &bbr->frame;

	f->pacing_gain = GAIN(1);
	f->cwnd_gain = PARAMS.cwnd_gain;
	if (f->state == STARTUP) {
		f->pacing_gain = PARAMS.startup_pacing_gain;
		f->cwnd_gain = PARAMS.startup_cwnd_gain;
	} else if (f->state == DRAIN) {
		f->pacing_gain = PARAMS.drain_pacing_gain;
		f->cwnd_gain = PARAMS.startup_cwnd_gain;
	} else if (f->state == DOWN) {
		f->pacing_gain = CAUTION.down_pacing_gain;
	} else if (f->state == UP) {
		f->pacing_gain = GAIN(1.25);
		f->cwnd_gain = CAUTION.up_cwnd_gain;
	} else if (f->state == PROBE_RTT) {
		f->cwnd_gain = PARAMS.probe_rtt_gain;
	}
	watch_for_cubic(bbr);
}

/* BoundCwndForModel. */
ALWAYS_INLINE u32 volume_cap(const struct bbr *bbr)
{
	const struct rules *r = &bbr->rules;
	u32 most = r->now.inflight_hi;
	u8 state = bbr->frame.state;

	if (state == STARTUP || state == DRAIN)
		most = NONE;
	else if (state == CRUISE || state == PROBE_RTT)
		most = with_headroom(r);
	return min(most, r->now.inflight_lo);
}

/* SetCwnd. */
ALWAYS_INLINE void update_window(struct sock *sk, struct bbr *bbr, const struct ack *ack)
{
	struct frame *f = &bbr->frame;
	u64 bw = bw_of(bbr);

	if (ack->acked) {
		u32 packets = bdp(f, bw, f->cwnd_gain, ack->mss) + extra_acked(f, bw, ack->mss);

		packets = with_allowance(sk, packets, is_raising(bbr), ack->mss);
		approach(sk, f, packets, ack->acked, ack->delivered < f->initial_window);
	}
	if (f->state == PROBE_RTT)
		cap_cwnd(sk, probe_rtt_cwnd(f, bw, ack->mss));
	cap_cwnd(sk, volume_cap(bbr));
}

/* SaveStateUponLoss. */
ALWAYS_INLINE void on_episode(struct sock *sk, struct bbr *bbr)
{
	bool cut = is_recovery(bbr->rules.before) || bbr->frame.state == PROBE_RTT;

	save_cwnd(sk, &bbr->frame, cut);
	bbr->rules.saved = bbr->rules.now;
	bbr->rules.undo_state = NO_STATE;
}

/* OnEnterRTO. The kernel leaves one packet beyond what is in flight. */
ALWAYS_INLINE void on_timeout(struct sock *sk, struct bbr *bbr, const struct ack *ack)
{
	struct rules *r = &bbr->rules;

	note_loss(r, ack->delivered);
	r->before = TCP_CA_Loss;
	restart_full_pipe(&bbr->frame, 0);
	if (!is_probing(&bbr->frame) && r->now.inflight_lo == NONE)
		r->now.inflight_lo = max(bbr->frame.prior_cwnd, tcp_sk(sk)->snd_cwnd);
}

/* HandleSpuriousLossDetection. */
ALWAYS_INLINE void on_spurious_loss(struct sock *sk, struct bbr *bbr, const struct ack *ack)
{
	struct frame *f = &bbr->frame;
	struct rules *r = &bbr->rules;
	u8 undo = r->undo_state;

	restore_cwnd(sk, f);
	r->loss_in_round = false;
	restart_full_pipe(f, 0);
	r->now.bw_lo = max(r->now.bw_lo, r->saved.bw_lo);
	r->now.inflight_lo = max(r->now.inflight_lo, r->saved.inflight_lo);
	r->now.inflight_hi = max(r->now.inflight_hi, r->saved.inflight_hi);
	r->undo_state = NO_STATE;
	if (!CAUTION.undo_returns)
		return;
	if (undo == STARTUP && f->state != STARTUP) {
		f->full_ever = false;
		if (f->state != PROBE_RTT)
			f->state = STARTUP;
	} else if (undo == UP && f->state != UP && f->state != PROBE_RTT) {
		start_refill(bbr, ack);
	}
}

#include "hooks.h"
