// SPDX-License-Identifier: GPL-2.0
/*
 * BBRv1 (Cardwell et al., "BBR: Congestion-Based Congestion Control", ACM Queue 14(5), 2016;
 * draft-cardwell-iccrg-bbr-congestion-control-00), as Linux's `bbr` has it.
 *
 * The model is two numbers, the greatest delivery rate of the last 10 rounds (bw) and the least
 * round-trip time of the last 10 s (min_rtt). The sender paces at gain * bw and keeps about 2 BDP in
 * flight. Neither can be measured while the other is, so it probes for them in turn:
 *
 *	Startup --pipe full--> Drain --queue gone--> ProbeBW <--> ProbeRTT (from any state)
 *
 * ProbeBW cycles through eight gains, 5/4, 3/4 and six times 1, each for a min_rtt. Loss is heeded
 * only by packet conservation in the first round of recovery. A path that is policed by a token
 * bucket is sent at the long-term rate.
 *
 * This is for comparison: the kernel has a bbr of its own, and this one's control is that of the
 * simulator. Twin of crates/cc/src/bbr/v1.rs, with bbr/frame.h of bbr/frame.rs and so on. Fixed
 * point: rates in whole bytes/s, times in microseconds, gains in 2^-16.
 */
#include "bbr/state.h"

/* Linux counts gains in 256ths: 2 / ln 2 = 2.885 is 739/256, its inverse 88/256. */
static const struct params PARAMS = {
	.startup_pacing_gain = 739 << 8,
	.startup_cwnd_gain = 739 << 8,
	.drain_pacing_gain = 88 << 8,
	.drain_rounds = LATE_DRAIN,
	.cwnd_gain = GAIN(2),
	.probe_rtt_interval = MIN_RTT_WINDOW,
	.probe_rtt_gain = 0,
	.startup_extra_acked_rounds = EXTRA_ACKED_ROUNDS,
	.adds_allowance = true,
	.one_packet_below = 1200000 / 8,
};

#include "bbr/frame.h"

/* Rounds over which the greatest delivery rate is taken: a cycle of gains and two. */
#define BW_ROUNDS 10
/* Until so many packets are delivered, the window grows whatever its target. */
#define EARLY 10
#define PHASES 8

/* The policer: its intervals, thresholds and for how long it is believed. */
#define LEAST_ROUNDS 4
#define MOST_ROUNDS 16
#define ROUNDS_IN_USE 48
#define LEAST_TIME 1000
#define CONSISTENT_DIFFERENCE (4000 / 8)

struct sample {
	u32 at;
	u64 bw;
};

struct rules {
	/* The best samples, of ever later rounds (Nichols' filter). */
	struct sample best[3];
	/* The cycle of gains. */
	u32 phase;
	u64 phase_began;
	/* Packet conservation. */
	u8 before;
	bool conserves;
	/* The policer; its rate is 0 while there is none. */
	bool is_policed;
	bool is_sampling;
	u32 policer_rounds;
	u32 interval_delivered;
	u32 interval_lost;
	u64 interval_began;
	u64 policer_bw;
};

#include "bbr/bbr.h"

ALWAYS_INLINE u64 max_bw_of(const struct bbr *bbr)
{
	return bbr->rules.best[0].bw;
}

ALWAYS_INLINE u64 bw_of(const struct bbr *bbr)
{
	return bbr->rules.is_policed ? bbr->rules.policer_bw : max_bw_of(bbr);
}

ALWAYS_INLINE bool is_raising(const struct bbr *bbr)
{
	return bbr->frame.state == PROBE_BW && bbr->rules.phase == 0;
}

ALWAYS_INLINE u8 phase_before(const struct bbr *bbr)
{
	return bbr->rules.before;
}

/* --- the greatest bandwidth ----------------------------------------------------------------- */

ALWAYS_INLINE void update_max(struct sample best[3], u32 round, u64 bw)
{
	struct sample sample = { round, bw };
	u32 age;

	if (bw >= best[0].bw || round - best[2].at > BW_ROUNDS) {
		best[0] = best[1] = best[2] = sample;
		return;
	}
	if (bw >= best[1].bw)
		best[1] = best[2] = sample;
	else if (bw >= best[2].bw)
		best[2] = sample;
	/* Drops what has left the window; else makes sure that the runners-up are of other times. */
	age = round - best[0].at;
	if (age > BW_ROUNDS) {
		best[0] = best[1];
		best[1] = best[2];
		best[2] = sample;
		if (round - best[0].at > BW_ROUNDS) {
			best[0] = best[1];
			best[1] = sample;
		}
	} else if (best[1].at == best[0].at && age > BW_ROUNDS / 4) {
		best[1] = best[2] = sample;
	} else if (best[2].at == best[1].at && age > BW_ROUNDS / 2) {
		best[2] = sample;
	}
}

/* --- the policer ---------------------------------------------------------------------------- */

ALWAYS_INLINE void begin_interval(struct rules *r, const struct ack *ack)
{
	r->interval_began = ack->delivered_at;
	r->interval_delivered = ack->delivered;
	r->interval_lost = ack->lost;
	r->policer_rounds = 0;
}

ALWAYS_INLINE void reset_policer(struct rules *r, const struct ack *ack)
{
	r->policer_bw = 0;
	r->is_policed = false;
	r->is_sampling = false;
	begin_interval(r, ack);
}

ALWAYS_INLINE void end_interval(struct rules *r, const struct ack *ack)
{
	u32 delivered = ack->delivered - r->interval_delivered, lost = ack->lost - r->interval_lost;
	u64 elapsed = less(ack->delivered_at, r->interval_began), bw, difference;

	if (!delivered || (u64)lost * 256 < (u64)delivered * 50 || elapsed < LEAST_TIME)
		return;
	bw = min((u64)delivered * ack->mss * 1000000 / elapsed, MOST_RATE);
	difference = bw > r->policer_bw ? bw - r->policer_bw : r->policer_bw - bw;
	if (r->policer_bw && (difference * 8 <= r->policer_bw ||
			      difference * 99 / 100 <= CONSISTENT_DIFFERENCE)) {
		r->policer_bw = (bw + r->policer_bw) / 2;
		r->is_policed = true;
		r->policer_rounds = 0;
		return;
	}
	r->policer_bw = bw;
	begin_interval(r, ack);
}

/* Takes evidence. Returns whether the path was held to be policed and is no longer. */
ALWAYS_INLINE bool observe_policer(struct bbr *bbr, const struct ack *ack, bool loss, bool limited)
{
	struct rules *r = &bbr->rules;

	if (r->is_policed) {
		if (bbr->frame.state != PROBE_BW || !bbr->frame.round_start ||
		    ++r->policer_rounds < ROUNDS_IN_USE)
			return false;
		reset_policer(r, ack);
		return true;
	}
	if (!r->is_sampling) {
		/* Until the first loss the bucket still had tokens. */
		if (!loss)
			return false;
		begin_interval(r, ack);
		r->is_sampling = true;
	}
	if (!limited)
		r->policer_rounds += bbr->frame.round_start;
	if (limited || r->policer_rounds > MOST_ROUNDS)
		reset_policer(r, ack);
	else if (r->policer_rounds >= LEAST_ROUNDS && loss)
		end_interval(r, ack);
	return false;
}

ALWAYS_INLINE void update_policer(struct bbr *bbr, const struct ack *ack, bool loss, bool limited)
{
	bool was_policed = bbr->rules.is_policed;

	if (observe_policer(bbr, ack, loss, limited))
		enter_probe_bw(bbr, ack);
	else if (!was_policed && bbr->rules.is_policed)
		bbr->frame.pacing_gain = GAIN(1);
}

/* --- the cycle of gains --------------------------------------------------------------------- */

ALWAYS_INLINE u32 gain_of_phase(u32 phase)
{
	return phase == 0 ? GAIN(1.25) : phase == 1 ? GAIN(0.75) : GAIN(1);
}

ALWAYS_INLINE void advance_cycle(struct rules *r, u64 now)
{
	r->phase = (r->phase + 1) % PHASES;
	r->phase_began = now;
}

/* At a random phase other than draining. */
ALWAYS_INLINE void enter_probe_bw(struct bbr *bbr, const struct ack *ack)
{
	u64 random = bpf_get_prandom_u32();

	bbr->frame.state = PROBE_BW;
	bbr->rules.phase = 7 - (random * 7 >> 32);
	advance_cycle(&bbr->rules, ack->delivered_at);
}

ALWAYS_INLINE bool is_phase_over(struct sock *sk, struct bbr *bbr, const struct ack *ack)
{
	struct frame *f = &bbr->frame;
	u32 gain = f->pacing_gain, in_net;
	bool full_length = f->min_rtt != UNKNOWN_RTT &&
			   ack->delivered_at > bbr->rules.phase_began + f->min_rtt;

	if (gain == GAIN(1))
		return full_length;
	in_net = in_network(sk, f, ack->prior_in_flight, bw_of(bbr), ack->mss);
	if (gain > GAIN(1))
		return full_length &&
		       (ack->losses || in_net >= inflight(sk, bbr, max_bw_of(bbr), gain, ack->mss));
	return full_length || in_net <= inflight(sk, bbr, max_bw_of(bbr), GAIN(1), ack->mss);
}

/* --- the rules ------------------------------------------------------------------------------ */

ALWAYS_INLINE void begin_rules(struct sock *sk, struct bbr *bbr)
{
	__builtin_memset(&bbr->rules, 0, sizeof(bbr->rules));
}

ALWAYS_INLINE void update_model(struct sock *sk, struct bbr *bbr, const struct ack *ack)
{
	bool limited;

	if (!ack->rated) {
		bbr->frame.round_start = false;
		return;
	}
	update_round(&bbr->frame, ack);
	if (bbr->frame.round_start)
		bbr->rules.conserves = false;
	limited = is_ack_limited(&bbr->frame, ack);
	update_policer(bbr, ack, ack->losses > 0, limited);
	if (!limited || ack->rate >= max_bw_of(bbr))
		update_max(bbr->rules.best, bbr->frame.round, ack->rate);
}

/* The cycle of gains advances here, before Drain ends and the cycle begins, as in Linux. */
ALWAYS_INLINE void update_full_pipe(struct sock *sk, struct bbr *bbr, const struct ack *ack)
{
	struct frame *f = &bbr->frame;
	bool limited = ack->rated && is_ack_limited(f, ack);

	if (f->state == PROBE_BW && is_phase_over(sk, bbr, ack))
		advance_cycle(&bbr->rules, ack->delivered_at);
	if (!f->full_ever && f->round_start && !limited)
		observe_full_pipe(f, max_bw_of(bbr));
}

ALWAYS_INLINE void update_probe_bw(struct sock *sk, struct bbr *bbr, const struct ack *ack)
{
}

ALWAYS_INLINE void end_ack(struct bbr *bbr, const struct ack *ack)
{
}

ALWAYS_INLINE void on_drain(struct bbr *bbr)
{
}

ALWAYS_INLINE void on_probe_rtt(struct bbr *bbr, const struct ack *ack)
{
}

ALWAYS_INLINE void after_probe_rtt(struct bbr *bbr, const struct ack *ack)
{
	if (bbr->frame.full_ever)
		enter_probe_bw(bbr, ack);
}

ALWAYS_INLINE void set_gains(struct bbr *bbr)
{
	struct frame *f = &bbr->frame;

	f->cwnd_gain = PARAMS.startup_cwnd_gain;
	if (f->state == STARTUP) {
		f->pacing_gain = PARAMS.startup_pacing_gain;
	} else if (f->state == DRAIN) {
		f->pacing_gain = PARAMS.drain_pacing_gain;
	} else if (f->state == PROBE_BW) {
		f->pacing_gain = bbr->rules.is_policed ? GAIN(1) : gain_of_phase(bbr->rules.phase);
		f->cwnd_gain = PARAMS.cwnd_gain;
	} else {
		f->pacing_gain = f->cwnd_gain = GAIN(1);
	}
}

/* Cuts or restores the window in recovery. Returns whether it is final: a packet out for one in. */
ALWAYS_INLINE bool conserve(struct sock *sk, struct bbr *bbr, const struct ack *ack)
{
	u32 released = ack->in_flight + ack->acked;
	struct rules *r = &bbr->rules;

	if (ack->losses)
		set_cwnd(sk, less(tcp_sk(sk)->snd_cwnd, ack->losses));
	if (ack->phase == TCP_CA_Recovery && r->before != TCP_CA_Recovery) {
		r->conserves = true;
		set_cwnd(sk, released);
		bbr->frame.round_began = ack->delivered;
	} else if (is_recovery(r->before) && !is_recovery(ack->phase)) {
		r->conserves = false;
		restore_cwnd(sk, &bbr->frame);
	}
	r->before = ack->phase;
	if (r->conserves)
		set_cwnd(sk, max(tcp_sk(sk)->snd_cwnd, released));
	return r->conserves;
}

ALWAYS_INLINE void update_window(struct sock *sk, struct bbr *bbr, const struct ack *ack)
{
	struct frame *f = &bbr->frame;
	u64 bw = bw_of(bbr);

	if (ack->acked && !conserve(sk, bbr, ack)) {
		u32 packets = bdp(f, bw, f->cwnd_gain, ack->mss);

		if (f->full_ever)
			packets += extra_acked(f, bw, ack->mss);
		packets = with_allowance(sk, packets, is_raising(bbr), ack->mss);
		approach(sk, f, packets, ack->acked, ack->delivered < EARLY);
	}
	if (f->state == PROBE_RTT)
		cap_cwnd(sk, probe_rtt_cwnd(f, bw, ack->mss));
}

ALWAYS_INLINE void on_episode(struct sock *sk, struct bbr *bbr)
{
	bool cut = is_recovery(bbr->rules.before) || bbr->frame.state == PROBE_RTT;

	save_cwnd(sk, &bbr->frame, cut);
}

ALWAYS_INLINE void on_timeout(struct sock *sk, struct bbr *bbr, const struct ack *ack)
{
	bbr->rules.before = TCP_CA_Loss;
	restart_full_pipe(&bbr->frame, 0);
	bbr->frame.round_start = true;
	update_policer(bbr, ack, true, false);
}

ALWAYS_INLINE void on_spurious_loss(struct sock *sk, struct bbr *bbr, const struct ack *ack)
{
	restart_full_pipe(&bbr->frame, 0);
	reset_policer(&bbr->rules, ack);
}

#include "bbr/hooks.h"

BBR_OPS(bbr, "db_bbr");
