/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The parts of BBR that all versions have: the twin of crates/cc/src/bbr/{model, pacing, window,
 * startup, probe_rtt, aggregation}.rs. A program defines PARAMS before this header.
 */
#pragma once

#include "state.h"

/* --- model: from rates and times to packets ------------------------------------------------- */

ALWAYS_INLINE u64 bytes_in(u64 bw, u64 time)
{
	return bw * min(time, MOST_TIME) / 1000000;
}

ALWAYS_INLINE u32 packets_in(u64 bw, u64 time, u32 mss)
{
	return bytes_in(bw, time) / mss;
}

/* gain * bw * min_rtt in whole packets, rounded up, without allowances. */
ALWAYS_INLINE u32 bdp(const struct frame *f, u64 bw, u32 gain, u32 mss)
{
	u64 packet = (u64)mss << 16;

	if (f->min_rtt == UNKNOWN_RTT)
		return f->initial_window;
	return (bytes_in(bw, f->min_rtt) * gain + packet - 1) / packet;
}

ALWAYS_INLINE u32 least_burst(const struct sock *sk)
{
	return sk->sk_pacing_rate < PARAMS.one_packet_below ? 1 : 2;
}

/* Packets that Linux sends at once: 1/1024 s worth, at most what fits into a 64 KiB buffer. */
ALWAYS_INLINE u32 burst(const struct sock *sk, u32 mss)
{
	u64 packets = min(sk->sk_pacing_rate >> 10, 65536 - 1 - 320) / mss;

	return min(max(packets, least_burst(sk)), 127);
}

/* Packets that must be in flight for `packets` to be in the network; two more while `raising`. */
ALWAYS_INLINE u32 with_allowance(const struct sock *sk, u32 packets, bool raising, u32 mss)
{
	u32 bursts = 3 * burst(sk, mss);
	u32 enough = PARAMS.adds_allowance ? (packets + bursts + 1) & ~1u
					   : max(max(packets, bursts), MIN_CWND);

	return raising ? enough + 2 : enough;
}

/* --- pacing: TCP's own counts payload only, as rates here do --------------------------------- */

ALWAYS_INLINE void pace(struct sock *sk, struct frame *f, u64 rate)
{
	f->pacing_rate = max(rate, 1);
	sk->sk_pacing_rate = min(f->pacing_rate, sk->sk_max_pacing_rate);
}

/* The first rate: the gain of Startup times the window per round-trip time. */
ALWAYS_INLINE void begin_pacing(struct sock *sk, struct frame *f, u32 cwnd, u32 rtt, u32 mss)
{
	u64 rate = (u64)cwnd * mss * 1000000 / max(rtt, 1);

	pace(sk, f, (min(rate, MOST_RATE) * PARAMS.startup_pacing_gain >> 16) * 99 / 100);
}

/* Begins anew with the first round-trip time, once. */
ALWAYS_INLINE void meet_rtt(struct sock *sk, struct frame *f, u32 mss)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (f->has_seen_rtt || !tp->srtt_us)
		return;
	f->has_seen_rtt = true;
	begin_pacing(sk, f, tp->snd_cwnd, tp->srtt_us >> 3, mss);
}

/* Paces at gain * bw, less 1 %; until the pipe is full the rate only rises. */
ALWAYS_INLINE void set_pacing(struct sock *sk, struct frame *f, u64 bw, u32 gain)
{
	u64 rate = (bw * gain >> 16) * 99 / 100;

	if (f->full_ever || rate > f->pacing_rate)
		pace(sk, f, rate);
}

/* Packets of in_flight that are in the network when the next one departs. */
ALWAYS_INLINE u32 in_network(struct sock *sk, const struct frame *f, u32 in_flight, u64 bw, u32 mss)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u64 wait = less(tp->tcp_wstamp_ns, tp->tcp_clock_cache) / 1000;
	u32 more = f->pacing_gain > GAIN(1) ? burst(sk, mss) : 0;

	return less(in_flight + more, packets_in(bw, wait, mss));
}

/* --- rounds and the full pipe --------------------------------------------------------------- */

ALWAYS_INLINE void update_round(struct frame *f, const struct ack *ack)
{
	f->round_start = is_reached(ack->prior_delivered, f->round_began);
	if (f->round_start) {
		f->round_began = ack->delivered;
		f->round++;
	}
}

ALWAYS_INLINE void restart_full_pipe(struct frame *f, u64 baseline)
{
	f->full_baseline = baseline;
	f->full_rounds = 0;
	f->full_now = false;
}

/* The pipe is full after three rounds without 25 % more bandwidth. */
ALWAYS_INLINE void observe_full_pipe(struct frame *f, u64 bw)
{
	if (f->full_now)
		return;
	if (4 * bw >= 5 * f->full_baseline) {
		restart_full_pipe(f, bw);
		return;
	}
	f->full_rounds++;
	f->full_now = f->full_rounds >= FULL_BW_ROUNDS;
	f->full_ever |= f->full_now;
}

/* --- min_rtt and ProbeRTT ------------------------------------------------------------------- */

/* Takes a round-trip time. Returns whether it is time for ProbeRTT. */
ALWAYS_INLINE bool observe_rtt(struct frame *f, u64 now, u32 rtt, bool is_delayed)
{
	bool expired = now > f->lowest_at + PARAMS.probe_rtt_interval;

	if (rtt != UNKNOWN_RTT && (rtt < f->lowest || (expired && !is_delayed))) {
		f->lowest = rtt;
		f->lowest_at = now;
	}
	if ((f->lowest != UNKNOWN_RTT && f->lowest <= f->min_rtt) ||
	    now > f->min_rtt_at + MIN_RTT_WINDOW) {
		f->min_rtt = f->lowest;
		f->min_rtt_at = f->lowest_at;
	}
	return expired;
}

/* Whether a sample shows what ProbeRTT or the application allowed, not what the path can do. */
ALWAYS_INLINE bool is_limited(const struct frame *f, u32 delivered, bool app_limited)
{
	if (app_limited)
		return true;
	return f->has_limited && is_reached(delivered, f->limited_from) &&
	       is_reached(f->limited_until, delivered);
}

ALWAYS_INLINE bool is_ack_limited(const struct frame *f, const struct ack *ack)
{
	return is_limited(f, ack->prior_delivered, ack->app_limited);
}

ALWAYS_INLINE void enter_probe_rtt(struct frame *f, const struct ack *ack)
{
	f->probe_rtt_done_at = 0;
	f->probe_rtt_round_done = false;
	f->has_limited = true;
	f->limited_from = ack->delivered;
	f->limited_until = ack->delivered;
}

ALWAYS_INLINE bool is_probe_rtt_time_over(const struct frame *f, u64 now)
{
	return f->probe_rtt_done_at && now > f->probe_rtt_done_at;
}

/* An acknowledgement in ProbeRTT, in which `most` packets may be in flight. Whether it is over. */
ALWAYS_INLINE bool hold_probe_rtt(struct frame *f, const struct ack *ack, u32 most)
{
	f->limited_until = ack->delivered + ack->in_flight;
	if (!f->probe_rtt_done_at) {
		if (ack->in_flight <= most) {
			f->probe_rtt_done_at = ack->coarse_now + PROBE_RTT_DURATION;
			f->probe_rtt_round_done = false;
			f->round_began = ack->delivered;
		}
		return false;
	}
	f->probe_rtt_round_done |= f->round_start;
	return f->probe_rtt_round_done && is_probe_rtt_time_over(f, ack->coarse_now);
}

ALWAYS_INLINE u32 probe_rtt_cwnd(const struct frame *f, u64 bw, u32 mss)
{
	return PARAMS.probe_rtt_gain ? max(bdp(f, bw, PARAMS.probe_rtt_gain, mss), MIN_CWND)
				     : MIN_CWND;
}

/* --- aggregation ---------------------------------------------------------------------------- */

ALWAYS_INLINE void restart_aggregation(struct frame *f, u64 now)
{
	f->epoch_began = now;
	f->epoch_acked = 0;
}

ALWAYS_INLINE void update_aggregation(struct sock *sk, struct frame *f, const struct ack *ack, u64 bw)
{
	u32 span = f->full_ever ? EXTRA_ACKED_ROUNDS : PARAMS.startup_extra_acked_rounds;
	u32 expected, extra;

	if (!ack->rated || !ack->acked)
		return;
	if (f->round_start && ++f->half_rounds >= span) {
		f->half_rounds = 0;
		f->half = !f->half;
		f->extra_acked[f->half & 1] = 0;
	}
	expected = packets_in(bw, less(ack->delivered_at, f->epoch_began), ack->mss);
	if (f->epoch_acked <= expected || f->epoch_acked + ack->acked >= EXTRA_ACKED_EPOCH) {
		restart_aggregation(f, ack->delivered_at);
		expected = 0;
	}
	f->epoch_acked += ack->acked;
	extra = min(f->epoch_acked - expected, tcp_sk(sk)->snd_cwnd);
	f->extra_acked[f->half & 1] = max(f->extra_acked[f->half & 1], extra);
}

/* Packets by which the window is widened: no more than are delivered in 100 ms. */
ALWAYS_INLINE u32 extra_acked(const struct frame *f, u64 bw, u32 mss)
{
	return min(max(f->extra_acked[0], f->extra_acked[1]), packets_in(bw, EXTRA_ACKED_MAX, mss));
}

/* --- window --------------------------------------------------------------------------------- */

ALWAYS_INLINE void set_cwnd(struct sock *sk, u32 cwnd)
{
	struct tcp_sock *tp = tcp_sk(sk);

	tp->snd_cwnd = min(max(cwnd, 1), tp->snd_cwnd_clamp);
}

/* Goes towards `target` on `acked` packets; `early` is whether hardly anything was delivered yet. */
ALWAYS_INLINE void approach(struct sock *sk, struct frame *f, u32 target, u32 acked, bool early)
{
	u32 cwnd = tcp_sk(sk)->snd_cwnd;

	if (f->full_ever)
		cwnd = min(cwnd + acked, target);
	else if (cwnd < target || early)
		cwnd += acked;
	set_cwnd(sk, max(cwnd, MIN_CWND));
}

ALWAYS_INLINE void cap_cwnd(struct sock *sk, u32 most)
{
	set_cwnd(sk, min(tcp_sk(sk)->snd_cwnd, max(most, MIN_CWND)));
}

/* Remembers the window before it is cut; if it is `cut` already, the greater of the two. */
ALWAYS_INLINE void save_cwnd(struct sock *sk, struct frame *f, bool cut)
{
	u32 cwnd = tcp_sk(sk)->snd_cwnd;

	f->prior_cwnd = cut ? max(f->prior_cwnd, cwnd) : cwnd;
}

ALWAYS_INLINE void restore_cwnd(struct sock *sk, struct frame *f)
{
	set_cwnd(sk, max(tcp_sk(sk)->snd_cwnd, f->prior_cwnd));
}

ALWAYS_INLINE void begin_frame(struct sock *sk, struct frame *f)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u64 now = tp->tcp_mstamp;
	u32 mss = max(tp->mss_cache, 1);

	__builtin_memset(f, 0, sizeof(*f));
	f->initial_window = tp->snd_cwnd;
	f->pacing_gain = PARAMS.startup_pacing_gain;
	f->cwnd_gain = PARAMS.startup_cwnd_gain;
	f->round_began = tp->delivered;
	f->min_rtt = UNKNOWN_RTT;
	f->lowest = UNKNOWN_RTT;
	f->min_rtt_at = now;
	f->lowest_at = now;
	f->epoch_began = now;
	begin_pacing(sk, f, tp->snd_cwnd, NOMINAL_RTT, mss);
	observe_rtt(f, now - now % TICK, tp->rtt_min.s[0].v, false);
	meet_rtt(sk, f, mss);
}
