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
 * that are presumably better than their windows tell. With l_p the greater of the packets delivered
 * since the last loss and between the last two, M the paths of the greatest window and B those of the
 * greatest l_p / rtt_p^2:
 *
 *	alpha_r =  1 / (paths |B \ M|)	r in B \ M
 *		  -1 / (paths |M|)	r in M, if B \ M is not empty
 *		   0			otherwise
 *
 * A sibling that runs another algorithm (it was given one of its own) counts as delivering nothing
 * between losses. Twin of crates/cc/src/olia.rs. Fixed point: windows and growth in 2^-32 packets,
 * sums in 2^-20 packets. The greatest window is the greatest to the last bit, as in the paper and the
 * draft; mptcp_olia.c, whose windows are whole packets, takes windows that are less than a packet
 * apart for equally great.
 */
#include "kernel.h"
#include "fixed.h"
#include "siblings.h"

/* Siblings read it, as the words from the third on of the algorithm's own memory. */
struct rule {
	/* Packets that had been delivered at the last loss and at the one before. */
	u64 last;
	u64 before;
};
#define RULE_WORD 2

/* l_p. */
ALWAYS_INLINE u64 between_losses(struct sock *sk, const struct tcp_congestion_ops *ops)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 last, before;

	if (READ(tp, inet_conn.icsk_ca_ops) != ops)
		return 0;
	last = READ(tp, inet_conn.icsk_ca_priv[RULE_WORD]);
	before = READ(tp, inet_conn.icsk_ca_priv[RULE_WORD + 1]);
	return min(max((u32)(READ(tp, delivered) - last), (u32)(last - before)), 0x7fffffff);
}

/* Who is best (its place among the members), and what is the greatest window. */
struct standings {
	u32 best;
	u32 paths;
	u64 most;
};

SEPARATE int rank(struct members *members, struct standings *standings)
{
	if (!members || !standings)
		return 0;
	EACH(i, MOST_SUBFLOWS) {
		struct member *member = &members->all[i], *best;

		if (!member->cwnd)
			continue;
		best = &members->all[standings->best % MOST_SUBFLOWS];
		standings->paths++;
		standings->most = max(standings->most, member->cwnd);
		if (is_at_least(member->packets, member->rtt, best->packets, best->rtt))
			standings->best = i;
	}
	return 0;
}

/* Whether the path is in M. */
SEPARATE bool is_largest(struct member *member, u64 most)
{
	return member && member->cwnd >= most;
}

/* Whether the path is in B \ M. */
SEPARATE bool is_collected(struct member *member, struct member *best, u64 most)
{
	return member && best && member->cwnd && member->cwnd < most &&
	       is_at_least(member->packets, member->rtt, best->packets, best->rtt);
}

/* 1 / alpha_r of the first of the members, without its sign; 0 for an alpha of 0. */
SEPARATE int inverse_alpha(struct members *members, struct standings *standings)
{
	u32 largest = 0, collected = 0;
	struct member best;

	if (!members || !standings)
		return 0;
	best = members->all[standings->best % MOST_SUBFLOWS];
	for (int i = 0; i < MOST_SUBFLOWS; i++) {
		largest += is_largest(&members->all[i], standings->most);
		collected += is_collected(&members->all[i], &best, standings->most);
	}
	if (!collected)
		return 0;
	if (is_collected(&members->all[0], &best, standings->most))
		return standings->paths * collected;
	return members->all[0].cwnd >= standings->most ? standings->paths * largest : 0;
}

/* alpha_r / w_r. */
ALWAYS_INLINE s64 alpha_per_packet(struct members *members, u64 cwnd)
{
	struct standings standings = {};
	u64 inverse, growth;

	rank(members, &standings);
	inverse = inverse_alpha(members, &standings);
	if (!inverse)
		return 0;
	growth = ratio((1ULL << 32) / inverse, cwnd);
	return members->all[0].cwnd >= standings.most ? -growth : growth;
}

ALWAYS_INLINE s64 increase(struct sock *sk, struct rule *rule, u64 cwnd)
{
	const struct tcp_congestion_ops *ops = tcp_sk(sk)->inet_conn.icsk_ca_ops;
	struct members members;

	if (!find_members(sk, cwnd, &members))
		return ratio(1ULL << 32, cwnd);
	EACH(i, MOST_SUBFLOWS) {
		if (members.all[i].cwnd)
			members.all[i].packets = between_losses(members.all[i].sk, ops);
	}
	return pooled_growth(&members, members.all[0].cwnd, members.all[0].rtt) +
	       alpha_per_packet(&members, cwnd);
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
