// SPDX-License-Identifier: GPL-2.0
/*
 * OLIA, the opportunistic linked increases (Khalili, Gast, Popovic and Le Boudec, "MPTCP is not
 * Pareto-optimal: performance issues and a possible solution", CoNEXT 2012;
 * draft-khalili-mptcp-congestion-control-05).
 *
 * For every packet acknowledged on subflow r:
 *
 *	w_r += (w_r / rtt_r^2) / (sum(w_p / rtt_p))^2 + alpha_r / w_r
 *
 * and on loss it is Reno. The first term is optimal resource pooling; alpha_r moves window to paths
 * that are better than their windows suggest. With l_p the maximum of the packets delivered
 * since the last loss and between the last two, M the paths of the maximum window and B those of the
 * maximum l_p / rtt_p^2:
 *
 *	alpha_r =  1 / (paths |B \ M|)	r in B \ M
 *		  -1 / (paths |M|)	r in M, if B \ M is not empty
 *		   0			otherwise
 *
 * A sibling that runs another algorithm has l_p 0. Port of crates/cc/src/olia.rs. Fixed point: windows and growth in 2^-32 packets,
 * sums in 2^-20 packets. Windows are compared exactly, as the paper and the draft define
 * M; mptcp_olia.c compares whole packets, so windows less than a packet apart may both be in M.
 */
#include "kernel.h"
#include "fixed.h"
#include "coupled.h"

/* Siblings read it, at word RULE_WORD of icsk_ca_priv. */
struct rule {
	/* Packets delivered at the last loss and at the one before. */
	u64 last;
	u64 before;
};
#define RULE_WORD 2

/* l_p. */
ALWAYS_INLINE u64 packets_between_losses(struct sock *sk, const struct tcp_congestion_ops *ops)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 last, before;

	if (READ(tp, inet_conn.icsk_ca_ops) != ops)
		return 0;
	last = READ(tp, inet_conn.icsk_ca_priv[RULE_WORD]);
	before = READ(tp, inet_conn.icsk_ca_priv[RULE_WORD + 1]);
	return min(max((u32)(READ(tp, delivered) - last), (u32)(last - before)), 0x7fffffff);
}

/* The index of a path in B, the number of paths, and the maximum window. */
struct path_ranks {
	u32 best;
	u32 paths;
	u64 max_cwnd;
};

__noinline int rank_paths(struct subflows *subflows, struct path_ranks *ranks)
{
	if (!subflows || !ranks)
		return 0;
	EACH(i, MAX_SUBFLOWS) {
		struct subflow *subflow = &subflows->all[i], *best;

		if (!subflow->cwnd)
			continue;
		best = &subflows->all[ranks->best % MAX_SUBFLOWS];
		ranks->paths++;
		ranks->max_cwnd = max(ranks->max_cwnd, subflow->cwnd);
		if (is_at_least(subflow->packets, subflow->rtt, best->packets, best->rtt))
			ranks->best = i;
	}
	return 0;
}

/* Whether the path is in M. */
__noinline bool is_in_m(struct subflow *subflow, u64 max_cwnd)
{
	return subflow && subflow->cwnd >= max_cwnd;
}

/* Whether the path is in B \ M. */
__noinline bool is_in_b_not_m(struct subflow *subflow, struct subflow *best, u64 max_cwnd)
{
	return subflow && best && subflow->cwnd && subflow->cwnd < max_cwnd &&
	       is_at_least(subflow->packets, subflow->rtt, best->packets, best->rtt);
}

/* 1 / |alpha_r| of this subflow; 0 for an alpha of 0. */
__noinline int inverse_alpha(struct subflows *subflows, struct path_ranks *ranks)
{
	u32 largest = 0, b_not_m = 0;
	struct subflow best;

	if (!subflows || !ranks)
		return 0;
	best = subflows->all[ranks->best % MAX_SUBFLOWS];
	for (int i = 0; i < MAX_SUBFLOWS; i++) {
		largest += is_in_m(&subflows->all[i], ranks->max_cwnd);
		b_not_m += is_in_b_not_m(&subflows->all[i], &best, ranks->max_cwnd);
	}
	if (!b_not_m)
		return 0;
	if (is_in_b_not_m(&subflows->all[0], &best, ranks->max_cwnd))
		return ranks->paths * b_not_m;
	return subflows->all[0].cwnd >= ranks->max_cwnd ? ranks->paths * largest : 0;
}

/* acked alpha_r / w_r. */
ALWAYS_INLINE s64 alpha_growth(struct subflows *subflows, u64 cwnd, u64 acked)
{
	struct path_ranks ranks = {};
	u64 inverse, growth;

	rank_paths(subflows, &ranks);
	inverse = inverse_alpha(subflows, &ranks);
	if (!inverse)
		return 0;
	growth = ratio(acked / inverse, cwnd);
	return subflows->all[0].cwnd >= ranks.max_cwnd ? -growth : growth;
}

ALWAYS_INLINE s64 increase(struct sock *sk, struct rule *rule, u64 cwnd, u64 acked)
{
	const struct tcp_congestion_ops *ops = tcp_sk(sk)->inet_conn.icsk_ca_ops;
	struct subflows subflows;

	if (!find_subflows(sk, cwnd, &subflows))
		return ratio(acked, cwnd);
	EACH(i, MAX_SUBFLOWS) {
		if (subflows.all[i].cwnd)
			subflows.all[i].packets = packets_between_losses(subflows.all[i].sk, ops);
	}
	return pooled_growth(&subflows, subflows.all[0].cwnd, subflows.all[0].rtt, acked) +
	       alpha_growth(&subflows, cwnd, acked);
}

ALWAYS_INLINE u64 decrease(struct sock *sk, struct rule *rule, u64 cwnd)
{
	rule->before = rule->last;
	rule->last = tcp_sk(sk)->delivered;
	return cwnd / 2;
}

ALWAYS_INLINE void on_timeout(struct sock *sk, struct rule *rule)
{
}

#include "windowed.h"

WINDOWED_OPS(olia, "db_olia");
