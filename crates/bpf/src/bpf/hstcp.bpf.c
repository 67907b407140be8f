// SPDX-License-Identifier: GPL-2.0
/*
 * HighSpeed TCP (RFC 3649).
 *
 * The response function is a straight line, on logarithmic axes, through the points (Low_P 10^-3,
 * Low_Window 38) and (High_P 10^-7, High_Window 83000) (section 5). Above Low_Window
 *
 *	w <- w + a(w) / w	for every acknowledgement
 *	w <- (1 - b(w)) w	on loss
 *	b(w) = (High_Decrease - 0.5) (log w - log Low_Window) / (log High_Window - log Low_Window) + 0.5
 *	a(w) = w^2 p(w) 2 b(w) / (2 - b(w))
 *
 * with High_Decrease 0.1 and p(w) = 1 / (12.8 w^1.2) (the program of appendix B), so that w^2 p(w)
 * is w^0.8 / 12.8. Up to Low_Window it is Reno: a 1, b 0.5. Above 100,000, where the RFC's table
 * ends, b stays and a follows the equation.
 *
 * Port of crates/cc/src/hstcp.rs, equations in place of Linux's table. Fixed point, Q32:
 * logarithms by digits, powers by a series. a is kept for the window in whole packets.
 */
#include "kernel.h"
#include "fixed.h"

#define LOW_WINDOW 38
#define TOP 100000
#define LOG2_LOW_WINDOW Q32(5.247927513443585)
/* log2(83000) - log2(38) */
#define LOG2_RANGE Q32(11.092896202565427)

struct rule {
	/* `a` and the window in whole packets that it is for; 0 for none. */
	u64 known;
	u64 a;
};

/* b(w) of log2(w). */
ALWAYS_INLINE u64 b_of(u64 log)
{
	/* log2(100000) = 16.61 */
	u64 above = sat_sub(min(log, Q32(16.609640474436812)), LOG2_LOW_WINDOW);

	return Q32(0.5) - ratio(above, LOG2_RANGE) * 2 / 5;
}

ALWAYS_INLINE u64 a_of(u64 packets)
{
	u64 log, b, power;

	if (packets <= LOW_WINDOW)
		return 1ULL << 32;
	log = log2_q32(packets);
	b = b_of(log);
	power = exp2_q32(log * 4 / 5);
	/* 1 / 12.8 is 5 / 64. */
	return max((u64)times(power, ratio(2 * b, Q32(2) - b)) * 5 / 64, 1ULL << 32);
}

ALWAYS_INLINE s64 increase(struct sock *sk, struct rule *rule, u64 cwnd, u64 acked)
{
	u64 packets = cwnd >> 32;

	if (rule->known != packets) {
		rule->known = packets;
		rule->a = a_of(packets);
	}
	return ratio(times(acked, rule->a), cwnd);
}

ALWAYS_INLINE u64 decrease(struct sock *sk, struct rule *rule, u64 cwnd)
{
	u64 b = b_of(log2_q32(cwnd) - (32ULL << 32));

	return cwnd - times(cwnd, b);
}

ALWAYS_INLINE void on_timeout(struct sock *sk, struct rule *rule)
{
}

#include "windowed.h"

WINDOWED_OPS(hstcp, "db_hstcp");
