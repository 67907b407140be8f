/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What all versions of BBR share: the port of crates/cc/src/bbr/{model, pacing, min_rtt,
 * ack_aggregation}.rs. A program defines PARAMS before this header.
 */
#pragma once

#include "state.h"

/* --- model: from rates and times to packets ------------------------------------------------- */

ALWAYS_INLINE u64 bytes_in(u64 bw, u64 time)
{
	return bw * min(time, MAX_TIME) / 1000000;
}

ALWAYS_INLINE u32 packets_in(u64 bw, u64 time, u32 mss)
{
	return bytes_in(bw, time) / mss;
}

/* gain * bw * min_rtt in whole packets, rounded up (BDPMultiple). */
ALWAYS_INLINE u32 bdp(const struct bbr_common *f, u64 bw, u32 gain, u32 mss)
{
	u64 packet = (u64)mss << 16;

	if (f->min_rtt == UNKNOWN_RTT)
		return f->initial_window;
	return (bytes_in(bw, f->min_rtt) * gain + packet - 1) / packet;
}

/*
 * For the budget only. The kernel takes its own, two: with a `min_tso_segs` of a program Linux 6.18 sent the
 * whole free window as one segment about once a second, even if it always returned 2.
 */
ALWAYS_INLINE u32 min_tso_segs(const struct sock *sk)
{
	return sk->sk_pacing_rate < PARAMS.min_tso_rate ? 1 : 2;
}

/* Packets in one TSO segment: 1/1024 s of the pacing rate, at most 64 KiB (tcp_tso_autosize). */
ALWAYS_INLINE u32 send_quantum(const struct sock *sk, u32 mss)
{
	u64 packets = min(sk->sk_pacing_rate >> 10, 65536 - 1 - 320) / mss;

	return min(max(packets, min_tso_segs(sk)), 127);
}

/* QuantizationBudget: `packets` plus what offload holds; two more while `raising`. */
ALWAYS_INLINE u32 quantization_budget(const struct sock *sk, u32 packets, bool raising, u32 mss)
{
	u32 offload_budget = 3 * send_quantum(sk, mss);
	u32 enough = PARAMS.adds_offload_budget ? (packets + offload_budget + 1) & ~1u
					   : max(max(packets, offload_budget), MIN_PIPE_CWND);

	return raising ? enough + 2 : enough;
}

/* --- pacing; rates count payload only, as the kernel's pacing does --------------------------- */

ALWAYS_INLINE void set_sk_pacing_rate(struct sock *sk, struct bbr_common *f, u64 rate)
{
	f->pacing_rate = max(rate, 1);
	sk->sk_pacing_rate = min(f->pacing_rate, sk->sk_max_pacing_rate);
}

/* The first rate: Startup's gain times cwnd / rtt. */
ALWAYS_INLINE void init_pacing_rate(struct sock *sk, struct bbr_common *f, u32 cwnd, u32 rtt, u32 mss)
{
	u64 rate = (u64)cwnd * mss * 1000000 / max(rtt, 1);

	set_sk_pacing_rate(sk, f, (min(rate, MAX_RATE) * PARAMS.startup_pacing_gain >> 16) * 99 / 100);
}

/* Sets the rate again from the first round-trip time, once. */
ALWAYS_INLINE void init_pacing_rate_from_rtt(struct sock *sk, struct bbr_common *f, u32 mss)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (f->has_seen_rtt || !tp->srtt_us)
		return;
	f->has_seen_rtt = true;
	init_pacing_rate(sk, f, tp->snd_cwnd, tp->srtt_us >> 3, mss);
}

/* SetPacingRateWithGain: gain * bw less 1 %; until full_bw_reached the rate only rises. */
ALWAYS_INLINE void set_pacing_rate_with_gain(struct sock *sk, struct bbr_common *f, u64 bw, u32 gain)
{
	u64 rate = (bw * gain >> 16) * 99 / 100;

	if (f->full_bw_reached || rate > f->pacing_rate)
		set_sk_pacing_rate(sk, f, rate);
}

/* Packets in the network at the next packet's departure (bbr_packets_in_net_at_edt). */
ALWAYS_INLINE u32 packets_in_net_at_edt(struct sock *sk, const struct bbr_common *f, u32 in_flight, u64 bw, u32 mss)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u64 wait = sat_sub(tp->tcp_wstamp_ns, tp->tcp_clock_cache) / 1000;
	u32 more = f->pacing_gain > GAIN(1) ? send_quantum(sk, mss) : 0;

	return sat_sub(in_flight + more, packets_in(bw, wait, mss));
}

/* --- rounds and the full pipe --------------------------------------------------------------- */

ALWAYS_INLINE void update_round(struct bbr_common *f, const struct ack *ack)
{
	f->round_start = is_reached(ack->prior_delivered, f->next_round_delivered);
	if (f->round_start) {
		f->next_round_delivered = ack->delivered;
		f->round++;
	}
}

ALWAYS_INLINE void reset_full_bw(struct bbr_common *f, u64 baseline)
{
	f->full_bw = baseline;
	f->full_bw_count = 0;
	f->full_bw_now = false;
}

/* Full after three rounds with less than 25 % growth of bandwidth. */
ALWAYS_INLINE void update_full_bw(struct bbr_common *f, u64 bw)
{
	if (f->full_bw_now)
		return;
	if (4 * bw >= 5 * f->full_bw) {
		reset_full_bw(f, bw);
		return;
	}
	f->full_bw_count++;
	f->full_bw_now = f->full_bw_count >= FULL_BW_COUNT;
	f->full_bw_reached |= f->full_bw_now;
}

/* --- min_rtt and ProbeRTT ------------------------------------------------------------------- */

/* UpdateMinRTT. Returns whether probe_rtt_min_delay has expired. */
ALWAYS_INLINE bool update_min_rtt(struct bbr_common *f, u64 now, u32 rtt, bool is_delayed)
{
	bool expired = now > f->probe_rtt_min_stamp + PARAMS.probe_rtt_interval;

	if (rtt != UNKNOWN_RTT && (rtt < f->probe_rtt_min_delay || (expired && !is_delayed))) {
		f->probe_rtt_min_delay = rtt;
		f->probe_rtt_min_stamp = now;
	}
	if ((f->probe_rtt_min_delay != UNKNOWN_RTT && f->probe_rtt_min_delay <= f->min_rtt) ||
	    now > f->min_rtt_stamp + MIN_RTT_FILTER_LEN) {
		f->min_rtt = f->probe_rtt_min_delay;
		f->min_rtt_stamp = f->probe_rtt_min_stamp;
	}
	return expired;
}

/* Whether the application or ProbeRTT limited the sample. */
ALWAYS_INLINE bool is_app_limited_sample(const struct bbr_common *f, u32 delivered, bool app_limited)
{
	if (app_limited)
		return true;
	return f->has_app_limited_range && is_reached(delivered, f->app_limited_from) &&
	       is_reached(f->app_limited_until, delivered);
}

ALWAYS_INLINE bool is_ack_app_limited(const struct bbr_common *f, const struct ack *ack)
{
	return is_app_limited_sample(f, ack->prior_delivered, ack->app_limited);
}

ALWAYS_INLINE void enter_probe_rtt(struct bbr_common *f, const struct ack *ack)
{
	f->probe_rtt_done_stamp = 0;
	f->probe_rtt_round_done = false;
	f->has_app_limited_range = true;
	f->app_limited_from = ack->delivered;
	f->app_limited_until = ack->delivered;
}

ALWAYS_INLINE bool is_probe_rtt_done(const struct bbr_common *f, u64 now)
{
	return f->probe_rtt_done_stamp && now > f->probe_rtt_done_stamp;
}

/* HandleProbeRTT with this limit of packets in flight. Returns whether ProbeRTT is over. */
ALWAYS_INLINE bool handle_probe_rtt(struct bbr_common *f, const struct ack *ack, u32 limit)
{
	f->app_limited_until = ack->delivered + ack->in_flight;
	if (!f->probe_rtt_done_stamp) {
		if (ack->in_flight <= limit) {
			f->probe_rtt_done_stamp = ack->jiffies_now + PROBE_RTT_DURATION;
			f->probe_rtt_round_done = false;
			f->next_round_delivered = ack->delivered;
		}
		return false;
	}
	f->probe_rtt_round_done |= f->round_start;
	return f->probe_rtt_round_done && is_probe_rtt_done(f, ack->jiffies_now);
}

ALWAYS_INLINE u32 probe_rtt_cwnd(const struct bbr_common *f, u64 bw, u32 mss)
{
	return PARAMS.probe_rtt_cwnd_gain ? max(bdp(f, bw, PARAMS.probe_rtt_cwnd_gain, mss), MIN_PIPE_CWND)
				     : MIN_PIPE_CWND;
}

/* --- aggregation ---------------------------------------------------------------------------- */

ALWAYS_INLINE void reset_ack_aggregation(struct bbr_common *f, u64 now)
{
	f->extra_acked_interval_start = now;
	f->extra_acked_delivered = 0;
}

ALWAYS_INLINE void update_ack_aggregation(struct sock *sk, struct bbr_common *f, const struct ack *ack, u64 bw)
{
	u32 span = f->full_bw_reached ? EXTRA_ACKED_WIN_RTTS : PARAMS.startup_extra_acked_win_rtts;
	u32 expected, extra;

	if (!ack->has_rate || !ack->acked)
		return;
	if (f->round_start && ++f->extra_acked_win_rtts >= span) {
		f->extra_acked_win_rtts = 0;
		f->extra_acked_win_idx = !f->extra_acked_win_idx;
		f->extra_acked[f->extra_acked_win_idx & 1] = 0;
	}
	expected = packets_in(bw, sat_sub(ack->delivered_at, f->extra_acked_interval_start), ack->mss);
	if (f->extra_acked_delivered <= expected || f->extra_acked_delivered + ack->acked >= ACK_EPOCH_ACKED_RESET_THRESH) {
		reset_ack_aggregation(f, ack->delivered_at);
		expected = 0;
	}
	f->extra_acked_delivered += ack->acked;
	extra = min(f->extra_acked_delivered - expected, tcp_sk(sk)->snd_cwnd);
	f->extra_acked[f->extra_acked_win_idx & 1] = max(f->extra_acked[f->extra_acked_win_idx & 1], extra);
}

/* Packets added to cwnd for aggregation: at most what bw delivers in 100 ms. */
ALWAYS_INLINE u32 extra_acked(const struct bbr_common *f, u64 bw, u32 mss)
{
	return min(max(f->extra_acked[0], f->extra_acked[1]), packets_in(bw, EXTRA_ACKED_MAX_US, mss));
}

/* --- window --------------------------------------------------------------------------------- */

ALWAYS_INLINE void snd_cwnd_set(struct sock *sk, u32 cwnd)
{
	struct tcp_sock *tp = tcp_sk(sk);

	tp->snd_cwnd = min(max(cwnd, 1), tp->snd_cwnd_clamp);
}

/* Moves cwnd towards `target` by `acked` packets; while `early` it grows beyond the target. */
ALWAYS_INLINE void grow_towards(struct sock *sk, struct bbr_common *f, u32 target, u32 acked, bool early)
{
	u32 cwnd = tcp_sk(sk)->snd_cwnd;

	if (f->full_bw_reached)
		cwnd = min(cwnd + acked, target);
	else if (cwnd < target || early)
		cwnd += acked;
	snd_cwnd_set(sk, max(cwnd, MIN_PIPE_CWND));
}

ALWAYS_INLINE void bound_cwnd(struct sock *sk, u32 limit)
{
	snd_cwnd_set(sk, min(tcp_sk(sk)->snd_cwnd, max(limit, MIN_PIPE_CWND)));
}

/* SaveCwnd. If cwnd is `cut` already, by recovery or ProbeRTT, keeps the maximum. */
ALWAYS_INLINE void save_cwnd(struct sock *sk, struct bbr_common *f, bool cut)
{
	u32 cwnd = tcp_sk(sk)->snd_cwnd;

	f->prior_cwnd = cut ? max(f->prior_cwnd, cwnd) : cwnd;
}

ALWAYS_INLINE void restore_cwnd(struct sock *sk, struct bbr_common *f)
{
	snd_cwnd_set(sk, max(tcp_sk(sk)->snd_cwnd, f->prior_cwnd));
}

ALWAYS_INLINE void init_common(struct sock *sk, struct bbr_common *f)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u64 now = tp->tcp_mstamp;
	u32 mss = max(tp->mss_cache, 1);

	__builtin_memset(f, 0, sizeof(*f));
	f->initial_window = tp->snd_cwnd;
	f->pacing_gain = PARAMS.startup_pacing_gain;
	f->cwnd_gain = PARAMS.startup_cwnd_gain;
	f->next_round_delivered = tp->delivered;
	f->min_rtt = UNKNOWN_RTT;
	f->probe_rtt_min_delay = UNKNOWN_RTT;
	f->min_rtt_stamp = now;
	f->probe_rtt_min_stamp = now;
	f->extra_acked_interval_start = now;
	init_pacing_rate(sk, f, tp->snd_cwnd, NOMINAL_RTT, mss);
	update_min_rtt(f, now - now % JIFFY, tp->rtt_min.s[0].v, false);
	init_pacing_rate_from_rtt(sk, f, mss);
}
