// SPDX-License-Identifier: GPL-2.0
/*
 * LIA, the linked increases of RFC 6356 (Wischik, Raiciu, Greenhalgh and Handley, "Design,
 * implementation and evaluation of congestion control for multipath TCP", NSDI 2011).
 *
 * For every packet acknowledged on subflow i (section 3, in packets):
 *
 *	cwnd_i += min(alpha / cwnd_total, 1 / cwnd_i)
 *	alpha = cwnd_total max(cwnd_i / rtt_i^2) / (sum(cwnd_i / rtt_i))^2	(2)
 *
 * and on loss it is Reno. alpha / cwnd_total is free of cwnd_total: with b the path of the maximum
 * cwnd / rtt^2 it is
 *
 *	cwnd_b / (sum(cwnd_i rtt_b / rtt_i))^2
 *
 * which is computed here at every acknowledgement. A subflow without siblings is Reno.
 *
 * Port of crates/cc/src/lia.rs. Fixed point: windows and growth in 2^-32 packets, sums in 2^-20
 * packets.
 */
#include "kernel.h"
#include "fixed.h"
#include "coupled.h"

struct rule {
};

ALWAYS_INLINE s64 increase(struct sock *sk, struct rule *rule, u64 cwnd, u64 acked)
{
	u64 reno = ratio(acked, cwnd);
	struct subflows subflows;
	struct subflow best;

	if (!find_subflows(sk, cwnd, &subflows))
		return reno;
	best = subflows.all[0];
	EACH(i, MAX_SUBFLOWS) {
		struct subflow *subflow = &subflows.all[i];

		if (subflow->cwnd && is_at_least(subflow->cwnd >> 22, subflow->rtt, best.cwnd >> 22, best.rtt))
			best = *subflow;
	}
	return min(pooled_growth(&subflows, best.cwnd, best.rtt, acked), reno);
}

ALWAYS_INLINE u64 decrease(struct sock *sk, struct rule *rule, u64 cwnd)
{
	return cwnd / 2;
}

ALWAYS_INLINE void on_timeout(struct sock *sk, struct rule *rule)
{
}

#include "windowed.h"

WINDOWED_OPS(lia, "db_lia");
