// SPDX-License-Identifier: GPL-2.0
/*
 * BBRv1 (Cardwell et al., "BBR: Congestion-Based Congestion Control", ACM Queue 14(5), 2016;
 * draft-cardwell-iccrg-bbr-congestion-control-00), as Linux's `bbr` has it.
 *
 * The model is two numbers, the maximum delivery rate of the last 10 rounds (bw) and the minimum
 * round-trip time of the last 10 s (min_rtt). The sender paces at gain * bw and keeps about 2 BDP in
 * flight. Neither can be measured while the other is, so it probes for them in turn:
 *
 *	Startup --pipe full--> Drain --queue gone--> ProbeBW <--> ProbeRTT (from any state)
 *
 * ProbeBW cycles through eight gains, 5/4, 3/4 and six times 1, each for a min_rtt. The only
 * response to loss is packet conservation in the first round of recovery. Through a token-bucket
 * policer it sends at the long-term rate (lt_bw).
 *
 * For comparison with the kernel's own bbr: this one is a port of the simulator's
 * crates/cc/src/bbr/v1.rs. Fixed
 * point: rates in whole bytes/s, times in microseconds, gains in 2^-16.
 */
#include "bbr/state.h"

/* Linux counts gains in 256ths: 2 / ln 2 = 2.885 is 739/256, its inverse 88/256. */
static const struct params PARAMS = {
	.startup_pacing_gain = 739 << 8,
	.startup_cwnd_gain = 739 << 8,
	.drain_pacing_gain = 88 << 8,
	.drain_max_rounds = NO_MAX_ROUNDS,
	.default_cwnd_gain = GAIN(2),
	.probe_rtt_interval = MIN_RTT_FILTER_LEN,
	.probe_rtt_cwnd_gain = 0,
	.startup_extra_acked_win_rtts = EXTRA_ACKED_WIN_RTTS,
	.adds_offload_budget = true,
	.min_tso_rate = 1200000 / 8,
};

#include "bbr/common.h"

/* Length of the max-bw filter in rounds: a cycle of gains and two. */
#define BW_RTTS 10
/* Until this many packets are delivered, the window grows even above its target. */
#define TCP_INIT_CWND 10
#define CYCLE_LEN 8

/* Detection of policers: lengths of intervals, thresholds, and for how long lt_bw is used. */
#define LT_INTVL_MIN_RTTS 4
#define LT_INTVL_MAX_RTTS 16
#define LT_BW_MAX_RTTS 48
#define LT_INTVL_MIN_US 1000
#define LT_BW_DIFF (4000 / 8)

struct sample {
	u32 at;
	u64 bw;
};

struct bbr_version {
	/* The three best samples, each of a later round than the one before (Linux's win_minmax). */
	struct sample best[3];
	/* The cycle of gains. */
	u32 cycle_idx;
	u64 cycle_stamp;
	/* Packet conservation. */
	u8 prev_ca_state;
	bool packet_conservation;
	/* Detection of policers; lt_bw is 0 while there is none. */
	bool lt_use_bw;
	bool lt_is_sampling;
	u32 lt_rtt_cnt;
	u32 lt_last_delivered;
	u32 lt_last_lost;
	u64 lt_last_stamp;
	u64 lt_bw;
};

#include "bbr/bbr.h"

ALWAYS_INLINE u64 max_bw_of(const struct bbr *bbr)
{
	return bbr->version.best[0].bw;
}

ALWAYS_INLINE u64 bw_of(const struct bbr *bbr)
{
	return bbr->version.lt_use_bw ? bbr->version.lt_bw : max_bw_of(bbr);
}

ALWAYS_INLINE bool is_probe_bw_up(const struct bbr *bbr)
{
	return bbr->common.state == PROBE_BW && bbr->version.cycle_idx == 0;
}

/* --- the max-bw filter ---------------------------------------------------------------------- */

ALWAYS_INLINE void update_max_bw(struct sample best[3], u32 round, u64 bw)
{
	struct sample sample = { round, bw };
	u32 age;

	if (bw >= best[0].bw || round - best[2].at > BW_RTTS) {
		best[0] = best[1] = best[2] = sample;
		return;
	}
	if (bw >= best[1].bw)
		best[1] = best[2] = sample;
	else if (bw >= best[2].bw)
		best[2] = sample;
	/* Drops samples older than the filter; keeps the second and third of later rounds. */
	age = round - best[0].at;
	if (age > BW_RTTS) {
		best[0] = best[1];
		best[1] = best[2];
		best[2] = sample;
		if (round - best[0].at > BW_RTTS) {
			best[0] = best[1];
			best[1] = sample;
		}
	} else if (best[1].at == best[0].at && age > BW_RTTS / 4) {
		best[1] = best[2] = sample;
	} else if (best[2].at == best[1].at && age > BW_RTTS / 2) {
		best[2] = sample;
	}
}

/* --- the long-term bandwidth of a policed path ---------------------------------------------- */

ALWAYS_INLINE void reset_lt_bw_sampling_interval(struct bbr_version *r, const struct ack *ack)
{
	r->lt_last_stamp = ack->delivered_at;
	r->lt_last_delivered = ack->delivered;
	r->lt_last_lost = ack->lost;
	r->lt_rtt_cnt = 0;
}

ALWAYS_INLINE void reset_lt_bw_sampling(struct bbr_version *r, const struct ack *ack)
{
	r->lt_bw = 0;
	r->lt_use_bw = false;
	r->lt_is_sampling = false;
	reset_lt_bw_sampling_interval(r, ack);
}

ALWAYS_INLINE void lt_bw_interval_done(struct bbr_version *r, const struct ack *ack)
{
	u32 delivered = ack->delivered - r->lt_last_delivered, lost = ack->lost - r->lt_last_lost;
	u64 elapsed = sat_sub(ack->delivered_at, r->lt_last_stamp), bw, difference;

	if (!delivered || (u64)lost * 256 < (u64)delivered * 50 || elapsed < LT_INTVL_MIN_US)
		return;
	bw = min((u64)delivered * ack->mss * 1000000 / elapsed, MAX_RATE);
	difference = bw > r->lt_bw ? bw - r->lt_bw : r->lt_bw - bw;
	if (r->lt_bw && (difference * 8 <= r->lt_bw ||
			      difference * 99 / 100 <= LT_BW_DIFF)) {
		r->lt_bw = (bw + r->lt_bw) / 2;
		r->lt_use_bw = true;
		r->lt_rtt_cnt = 0;
		return;
	}
	r->lt_bw = bw;
	reset_lt_bw_sampling_interval(r, ack);
}

/* Linux's bbr_lt_bw_sampling. Returns whether lt_bw was in use for its maximum time. */
ALWAYS_INLINE bool lt_bw_sampling(struct bbr *bbr, const struct ack *ack, bool loss, bool app_limited)
{
	struct bbr_version *r = &bbr->version;

	if (r->lt_use_bw) {
		if (bbr->common.state != PROBE_BW || !bbr->common.round_start ||
		    ++r->lt_rtt_cnt < LT_BW_MAX_RTTS)
			return false;
		reset_lt_bw_sampling(r, ack);
		return true;
	}
	if (!r->lt_is_sampling) {
		/* Until the first loss the bucket still had tokens. */
		if (!loss)
			return false;
		reset_lt_bw_sampling_interval(r, ack);
		r->lt_is_sampling = true;
	}
	if (!app_limited)
		r->lt_rtt_cnt += bbr->common.round_start;
	if (app_limited || r->lt_rtt_cnt > LT_INTVL_MAX_RTTS)
		reset_lt_bw_sampling(r, ack);
	else if (r->lt_rtt_cnt >= LT_INTVL_MIN_RTTS && loss)
		lt_bw_interval_done(r, ack);
	return false;
}

ALWAYS_INLINE void update_lt_bw(struct bbr *bbr, const struct ack *ack, bool loss, bool app_limited)
{
	bool was_lt_use_bw = bbr->version.lt_use_bw;

	if (lt_bw_sampling(bbr, ack, loss, app_limited))
		enter_probe_bw(bbr, ack);
	else if (!was_lt_use_bw && bbr->version.lt_use_bw)
		bbr->common.pacing_gain = GAIN(1);
}

/* --- the cycle of gains --------------------------------------------------------------------- */

ALWAYS_INLINE u32 pacing_gain_of(u32 cycle_idx)
{
	return cycle_idx == 0 ? GAIN(1.25) : cycle_idx == 1 ? GAIN(0.75) : GAIN(1);
}

ALWAYS_INLINE void advance_cycle_phase(struct bbr_version *r, u64 now)
{
	r->cycle_idx = (r->cycle_idx + 1) % CYCLE_LEN;
	r->cycle_stamp = now;
}

/* Starts at a random phase, other than the one that drains. */
ALWAYS_INLINE void enter_probe_bw(struct bbr *bbr, const struct ack *ack)
{
	u64 random = bpf_get_prandom_u32();

	bbr->common.state = PROBE_BW;
	bbr->version.cycle_idx = 7 - (random * 7 >> 32);
	advance_cycle_phase(&bbr->version, ack->delivered_at);
}

ALWAYS_INLINE bool is_next_cycle_phase(struct sock *sk, struct bbr *bbr, const struct ack *ack)
{
	struct bbr_common *f = &bbr->common;
	u32 gain = f->pacing_gain, in_net;
	bool full_length = f->min_rtt != UNKNOWN_RTT &&
			   ack->delivered_at > bbr->version.cycle_stamp + f->min_rtt;

	if (gain == GAIN(1))
		return full_length;
	in_net = packets_in_net_at_edt(sk, f, ack->prior_in_flight, bw_of(bbr), ack->mss);
	if (gain > GAIN(1))
		return full_length &&
		       (ack->losses || in_net >= inflight(sk, bbr, max_bw_of(bbr), gain, ack->mss));
	return full_length || in_net <= inflight(sk, bbr, max_bw_of(bbr), GAIN(1), ack->mss);
}

/* --- the steps of an acknowledgement -------------------------------------------------------- */

ALWAYS_INLINE void init_version(struct sock *sk, struct bbr *bbr)
{
	__builtin_memset(&bbr->version, 0, sizeof(bbr->version));
}

ALWAYS_INLINE void update_model(struct sock *sk, struct bbr *bbr, const struct ack *ack)
{
	bool app_limited;

	if (!ack->has_rate) {
		bbr->common.round_start = false;
		return;
	}
	update_round(&bbr->common, ack);
	if (bbr->common.round_start)
		bbr->version.packet_conservation = false;
	app_limited = is_ack_app_limited(&bbr->common, ack);
	update_lt_bw(bbr, ack, ack->losses > 0, app_limited);
	if (!app_limited || ack->rate >= max_bw_of(bbr))
		update_max_bw(bbr->version.best, bbr->common.round, ack->rate);
}

/* The cycle of gains advances here, before Drain ends and the cycle begins, as in Linux. */
ALWAYS_INLINE void check_full_bw_reached(struct sock *sk, struct bbr *bbr, const struct ack *ack)
{
	struct bbr_common *f = &bbr->common;
	bool app_limited = ack->has_rate && is_ack_app_limited(f, ack);

	if (f->state == PROBE_BW && is_next_cycle_phase(sk, bbr, ack))
		advance_cycle_phase(&bbr->version, ack->delivered_at);
	if (!f->full_bw_reached && f->round_start && !app_limited)
		update_full_bw(f, max_bw_of(bbr));
}

ALWAYS_INLINE void update_probe_bw_cycle_phase(struct sock *sk, struct bbr *bbr, const struct ack *ack)
{
}

ALWAYS_INLINE void advance_latest_delivery_signals(struct bbr *bbr, const struct ack *ack)
{
}

ALWAYS_INLINE void on_enter_drain(struct bbr *bbr)
{
}

ALWAYS_INLINE void on_enter_probe_rtt(struct bbr *bbr, const struct ack *ack)
{
}

ALWAYS_INLINE void on_exit_probe_rtt(struct bbr *bbr, const struct ack *ack)
{
	if (bbr->common.full_bw_reached)
		enter_probe_bw(bbr, ack);
}

ALWAYS_INLINE void update_gains(struct bbr *bbr)
{
	struct bbr_common *f = &bbr->common;

	f->cwnd_gain = PARAMS.startup_cwnd_gain;
	if (f->state == STARTUP) {
		f->pacing_gain = PARAMS.startup_pacing_gain;
	} else if (f->state == DRAIN) {
		f->pacing_gain = PARAMS.drain_pacing_gain;
	} else if (f->state == PROBE_BW) {
		f->pacing_gain = bbr->version.lt_use_bw ? GAIN(1) : pacing_gain_of(bbr->version.cycle_idx);
		f->cwnd_gain = PARAMS.default_cwnd_gain;
	} else {
		f->pacing_gain = f->cwnd_gain = GAIN(1);
	}
}

/* Cuts or restores the window in recovery. Returns whether packet conservation sets the window. */
ALWAYS_INLINE bool set_cwnd_to_recover_or_restore(struct sock *sk, struct bbr *bbr, const struct ack *ack)
{
	u32 released = ack->in_flight + ack->acked;
	struct bbr_version *r = &bbr->version;

	if (ack->losses)
		snd_cwnd_set(sk, sat_sub(tcp_sk(sk)->snd_cwnd, ack->losses));
	if (ack->ca_state == TCP_CA_Recovery && r->prev_ca_state != TCP_CA_Recovery) {
		r->packet_conservation = true;
		snd_cwnd_set(sk, released);
		bbr->common.next_round_delivered = ack->delivered;
	} else if (is_recovery(r->prev_ca_state) && !is_recovery(ack->ca_state)) {
		r->packet_conservation = false;
		restore_cwnd(sk, &bbr->common);
	}
	r->prev_ca_state = ack->ca_state;
	if (r->packet_conservation)
		snd_cwnd_set(sk, max(tcp_sk(sk)->snd_cwnd, released));
	return r->packet_conservation;
}

ALWAYS_INLINE void set_cwnd(struct sock *sk, struct bbr *bbr, const struct ack *ack)
{
	struct bbr_common *f = &bbr->common;
	u64 bw = bw_of(bbr);

	if (ack->acked && !set_cwnd_to_recover_or_restore(sk, bbr, ack)) {
		u32 packets = bdp(f, bw, f->cwnd_gain, ack->mss);

		if (f->full_bw_reached)
			packets += extra_acked(f, bw, ack->mss);
		packets = quantization_budget(sk, packets, is_probe_bw_up(bbr), ack->mss);
		grow_towards(sk, f, packets, ack->acked, ack->delivered < TCP_INIT_CWND);
	}
	if (f->state == PROBE_RTT)
		bound_cwnd(sk, probe_rtt_cwnd(f, bw, ack->mss));
}

ALWAYS_INLINE void save_state_upon_loss(struct sock *sk, struct bbr *bbr)
{
	bool cut = is_recovery(bbr->version.prev_ca_state) || bbr->common.state == PROBE_RTT;

	save_cwnd(sk, &bbr->common, cut);
}

ALWAYS_INLINE void on_enter_rto(struct sock *sk, struct bbr *bbr, const struct ack *ack)
{
	bbr->version.prev_ca_state = TCP_CA_Loss;
	reset_full_bw(&bbr->common, 0);
	bbr->common.round_start = true;
	update_lt_bw(bbr, ack, true, false);
}

ALWAYS_INLINE void handle_spurious_loss_detection(struct sock *sk, struct bbr *bbr, const struct ack *ack)
{
	reset_full_bw(&bbr->common, 0);
	reset_lt_bw_sampling(&bbr->version, ack);
}

#include "bbr/ops.h"

BBR_OPS(bbr, "db_bbr");
