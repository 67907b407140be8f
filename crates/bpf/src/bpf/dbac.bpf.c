// SPDX-License-Identifier: GPL-2.0
/*
 * DBAC, dynamic bandwidth aware congestion control (Han, "Optimizing transmission efficiency with
 * dynamic bandwidth aware congestion control (DBAC) in high-speed multipath networks", 2024).
 *
 * LIA cannot fill a path of a large bandwidth-delay product, as Reno cannot. DBAC has CUBIC's window
 * there and LIA's elsewhere, and in LIA's sums it replaces CUBIC's window by the one
 * that LIA would have had on that path. A path is large while window times MSS is at least 10^6
 * bytes. On a large path CUBIC runs, and its window `currentCubic` gives W_dbac, which limits what
 * is in flight:
 *
 *	avgReno = sqrt(3 / (2 p))						(3)
 *	avgCubic = 1.054 RTT^(3/4) / p^(3/4)					(4)
 *	virtualReno = currentCubic avgReno / avgCubic				(5)
 *	alpha1 = LIA's alpha of virtualReno and the siblings' windows
 *	W_dbac = virtualReno sqrt(alpha1) avgCubic / avgReno			(6)
 *
 * with p 10^-6. The other paths grow as LIA does, with alpha2:
 * LIA's alpha of W_dbac avgReno / avgCubic and the real windows of the small paths. Every
 * acknowledgement uses the siblings' present windows, which makes alpha1 and alpha2 converge.
 *
 * Port of crates/cc/src/dbac.rs, which states what the paper leaves unspecified. Fixed point: windows and
 * growth in 2^-32 packets; powers and roots by logarithms.
 */
#include "kernel.h"
#include "fixed.h"
#include "coupled.h"
#include "cubic.h"

#define THRESHOLD 1000000
/* log2(sqrt(1.5e6) / 1.054): avgReno / avgCubic is that power of 2, times RTT^(-3/4) in us. */
#define LOG2_SHARE Q32(10.182390668047537)
#define ONE (1ULL << 32)

/* Fills icsk_ca_priv: 13 words. */
struct dbac {
	/* The window's fraction of a packet. First, as siblings read it there. */
	u64 fraction;
	/* LIA's or CUBIC's window; `share` of it is what snd_cwnd allows. */
	u64 cwnd;
	u64 ssthresh;
	u64 share;
	/* cwnd and ssthresh before the last reduction. */
	u64 prior_cwnd;
	u64 prior_ssthresh;
	u64 last_ack;
	/* cubic.flag: whether the path is large. */
	struct cubic cubic;
};

ALWAYS_INLINE bool is_large(u64 cwnd_q10, u32 mss)
{
	return (cwnd_q10 * mss >> 10) >= THRESHOLD;
}

/* Equations 3 and 4: Reno's window for each packet of CUBIC's; rtt in 2^-3 us. */
__noinline u64 reno_per_cubic(u32 rtt)
{
	u64 rtt_power = log2_q32(max(rtt, 8)) - (3ULL << 32);

	/* 2^20 times as much, so that no exponent is negative. */
	rtt_power = LOG2_SHARE + (20ULL << 32) - rtt_power * 3 / 4;
	return exp2_q32(rtt_power) >> 20;
}

__noinline u64 square_root(u64 x)
{
	return x ? exp2_q32(log2_q32(x) / 2) >> 16 : 0;
}

/* LIA's alpha / cwnd_total, and alpha itself. */
ALWAYS_INLINE u64 lia_alpha(const struct subflows *subflows, u64 *alpha)
{
	struct subflow best = subflows->all[0];
	u64 total = 0, growth;

	EACH(i, MAX_SUBFLOWS) {
		const struct subflow *subflow = &subflows->all[i];

		total += subflow->cwnd >> 22;
		if (subflow->cwnd && is_at_least(subflow->cwnd >> 22, subflow->rtt, best.cwnd >> 22, best.rtt))
			best = *subflow;
	}
	growth = pooled_growth(subflows, best.cwnd, best.rtt, ONE);
	*alpha = total * growth >> 10;
	return growth;
}

/* The subflows, with the windows that LIA's equation uses. */
ALWAYS_INLINE bool find_coupled(struct sock *sk, u64 cwnd, struct subflows *subflows)
{
	u32 mss = tcp_sk(sk)->mss_cache;

	if (!find_subflows(sk, cwnd, subflows))
		return false;
	EACH(i, MAX_SUBFLOWS) {
		struct subflow *subflow = &subflows->all[i];

		if (is_large(subflow->cwnd >> 22, mss))
			subflow->cwnd = (subflow->cwnd >> 12) * (reno_per_cubic(subflow->rtt) >> 12) >> 8;
	}
	return true;
}

/* Sets mode and share from the present windows of all subflows. Returns LIA's growth. */
ALWAYS_INLINE u64 couple(struct sock *sk, struct dbac *dbac)
{
	struct subflows subflows;
	u64 growth, alpha;
	bool large;

	if (!find_coupled(sk, dbac->cwnd, &subflows))
		return ONE;
	large = is_large(dbac->cwnd >> 22, tcp_sk(sk)->mss_cache);
	if (large != dbac->cubic.flag)
		__builtin_memset(&dbac->cubic, 0, sizeof(dbac->cubic));
	dbac->cubic.flag = large;
	growth = lia_alpha(&subflows, &alpha);
	dbac->share = large ? square_root(alpha) : ONE;
	return growth;
}

/* Equation 6. */
ALWAYS_INLINE u64 in_flight(const struct dbac *dbac, u64 window)
{
	return (window >> 16) * (dbac->share >> 8) >> 8;
}

ALWAYS_INLINE void publish(struct sock *sk, struct dbac *dbac)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u64 window = max(in_flight(dbac, dbac->cwnd), ONE);

	tp->snd_cwnd = min(window >> 32, tp->snd_cwnd_clamp);
	dbac->fraction = (u32)window;
}

SEC("struct_ops")
void HOOK(dbac_init, struct sock *sk)
{
	struct dbac *dbac = inet_csk_ca(sk);

	__builtin_memset(dbac, 0, sizeof(*dbac));
	dbac->cwnd = (u64)tcp_sk(sk)->snd_cwnd << 32;
	dbac->ssthresh = NEVER;
	dbac->share = ONE;
}

/* Called for every acknowledgement, in recovery too. */
SEC("struct_ops")
void HOOK(dbac_in_ack_event, struct sock *sk, u32 flags)
{
	struct dbac *dbac = inet_csk_ca(sk);

	dbac->last_ack = tcp_sk(sk)->tcp_mstamp;
	couple(sk, dbac);
}

SEC("struct_ops")
void HOOK(dbac_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct dbac *dbac = inet_csk_ca(sk);
	u64 acked_cnt = (u64)acked << 32, growth, grown;

	growth = couple(sk, dbac);
	if (!tcp_is_cwnd_limited(tp)) {
		publish(sk, dbac);
		return;
	}
	if (dbac->cwnd < dbac->ssthresh) {
		grown = min(dbac->cwnd + acked_cnt, dbac->ssthresh);
		acked_cnt -= grown - dbac->cwnd;
		dbac->cwnd = grown;
	}
	if (acked_cnt && dbac->cubic.flag) {
		u32 min_rtt = tp->rtt_min.s[0].v;

		min_rtt = min_rtt == ~0u ? 0 : min_rtt;
		dbac->cwnd += cubic_increase(&dbac->cubic, tp->tcp_mstamp, min_rtt, dbac->cwnd, acked_cnt);
	} else if (acked_cnt) {
		dbac->cwnd += times(acked_cnt, min(growth, ratio(ONE, dbac->cwnd)));
	}
	publish(sk, dbac);
}

SEC("struct_ops")
u32 HOOK(dbac_ssthresh, struct sock *sk)
{
	struct dbac *dbac = inet_csk_ca(sk);
	u64 threshold;

	dbac->prior_cwnd = dbac->cwnd;
	dbac->prior_ssthresh = dbac->ssthresh;
	threshold = dbac->cubic.flag ? cubic_decrease(&dbac->cubic, dbac->cwnd) : dbac->cwnd / 2;
	dbac->ssthresh = max(threshold, 2 * ONE);
	dbac->cwnd = dbac->ssthresh;
	threshold = max(in_flight(dbac, dbac->ssthresh), 2 * ONE);
	dbac->fraction = (u32)threshold;
	return threshold >> 32;
}

SEC("struct_ops")
void HOOK(dbac_set_state, struct sock *sk, u8 new_state)
{
	struct dbac *dbac = inet_csk_ca(sk);

	if (new_state != TCP_CA_Loss)
		return;
	dbac->cwnd = ONE;
	dbac->fraction = 0;
	dbac->cubic.w_max = 0;
	dbac->cubic.epoch_start = 0;
}

SEC("struct_ops")
u32 HOOK(dbac_undo_cwnd, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct dbac *dbac = inet_csk_ca(sk);

	dbac->cwnd = max(dbac->cwnd, dbac->prior_cwnd);
	dbac->ssthresh = max(dbac->ssthresh, dbac->prior_ssthresh);
	return max(tp->snd_cwnd, tp->prior_cwnd);
}

/* Shifts the epoch by the time that the application was idle. */
SEC("struct_ops")
void HOOK(dbac_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	struct dbac *dbac = inet_csk_ca(sk);
	u64 now = tcp_sk(sk)->tcp_mstamp;

	if (event == CA_EVENT_TX_START && dbac->cubic.epoch_start)
		dbac->cubic.epoch_start = min(dbac->cubic.epoch_start + sat_sub(now, dbac->last_ack), now);
}

#ifndef NATIVE
SEC(".struct_ops")
#endif
struct tcp_congestion_ops dbac = {
	.init = (void *)dbac_init,
	.in_ack_event = (void *)dbac_in_ack_event,
	.cong_avoid = (void *)dbac_cong_avoid,
	.ssthresh = (void *)dbac_ssthresh,
	.set_state = (void *)dbac_set_state,
	.undo_cwnd = (void *)dbac_undo_cwnd,
	.cwnd_event = (void *)dbac_cwnd_event,
	.flags = TCP_CONG_NON_RESTRICTED,
	.name = "db_dbac",
};
