/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Rules that let loss bound the model: BBRv2, F-BBRv2 and BBRv3. The twin of
 * crates/cc/src/bbr/{bounded, bounded/phases, bounded/losses, signals, bounds, probe_bw, assertion}.rs,
 * written along draft-ietf-ccwg-bbr-06, whose names the comments have. Before this header a program
 * defines PARAMS and CAUTION.
 *
 * Google's branch gives every packet a stamp of what was in flight and lost when it was sent, and
 * tells BBR of every lost packet. The stock kernel does neither. Here a ring of what was the case after
 * each acknowledgement stands in: a packet that was sent when so many packets had been delivered
 * (rs->prior_delivered, which the kernel does tell) has the entry of that acknowledgement. So what
 * was in flight is known as of the last packet sent before the next acknowledgement, and losses
 * are judged once an acknowledgement, with the newest packet acknowledged in the lost one's place.
 * ECN is not heeded: the stock kernel does not tell of each mark.
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

/* --- stamps --------------------------------------------------------------------------------- */

/* Takes the stamp of the newest packet acknowledged, and completes that of the last one. */
ALWAYS_INLINE void read_stamp(struct bbr *bbr, const struct ack *ack)
{
	struct rules *r = &bbr->rules;
	struct stamp *last = &r->stamps[r->last_stamp % STAMPS];
	struct stamp *found = &r->stamps[ack->prior_delivered % STAMPS];

	last->in_flight = ack->prior_in_flight;
	if (!ack->rated)
		return;
	if (found->delivered == ack->prior_delivered) {
		r->newest = *found;
	} else {
		/* Overwritten, as more than STAMPS packets are in flight: what the round began with. */
		r->newest.in_flight = ack->prior_in_flight;
		r->newest.lost = r->round_lost;
	}
	r->newest.in_flight = max(r->newest.in_flight, 1);
}

ALWAYS_INLINE void write_stamp(struct bbr *bbr, const struct ack *ack)
{
	struct rules *r = &bbr->rules;
	struct stamp *next = &r->stamps[ack->delivered % STAMPS];

	r->last_stamp = ack->delivered;
	next->delivered = ack->delivered;
	next->lost = ack->lost;
	next->in_flight = ack->in_flight;
	if (bbr->frame.round_start)
		r->round_lost = ack->lost;
}

/* Packets lost since the newest packet acknowledged was sent. */
ALWAYS_INLINE u32 lost_since(const struct rules *r, const struct ack *ack)
{
	return ack->lost - r->newest.lost;
}

ALWAYS_INLINE bool is_loss_too_high(u32 lost, u32 in_flight)
{
	return (u64)lost * 100 > (u64)in_flight * LOSS_THRESH_PERCENT;
}

ALWAYS_INLINE bool is_too_high(const struct rules *r, const struct ack *ack)
{
	return is_loss_too_high(lost_since(r, ack), r->newest.in_flight);
}

/* --- bounds --------------------------------------------------------------------------------- */

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

/* --- signals -------------------------------------------------------------------------------- */

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

/* --- probing -------------------------------------------------------------------------------- */

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

/* --- the model ------------------------------------------------------------------------------ */

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

/* --- the rules ------------------------------------------------------------------------------ */

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
