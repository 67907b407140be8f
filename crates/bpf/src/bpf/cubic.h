/* SPDX-License-Identifier: GPL-2.0 */
/*
 * CUBIC (RFC 9438) as in Linux: the port of crates/cc/src/cubic.rs.
 *
 *	W_cubic(t) = C (t - K)^3 + W_max			(1)
 *	K = cbrt((W_max - cwnd_epoch) / C)			(2)
 *	cwnd += (target - cwnd) / cwnd, target at most 1.5 cwnd	for every packet acknowledged
 *
 * with C 0.4 and beta 0.7, the target min_rtt ahead, and at least Reno's estimate:
 *
 *	W_est += alpha segments_acked / cwnd			(4)
 *	alpha = 3 (1 - beta) / (1 + beta)
 *
 * Windows are packets in Q32; times of the cubic in 2^-14 s.
 */
#pragma once

#include "fixed.h"

struct cubic {
	/* 0 before the first reduction and after a timeout. */
	u64 w_max;
	/* Microseconds; 0 while there is no epoch. */
	u64 epoch_start;
	/* The plateau, Reno's estimate, and K: when the plateau is reached. */
	u64 origin_point;
	u64 w_est;
	u32 k;
	/* For the algorithm that embeds this. */
	u32 flag;
};

/* Microseconds in 2^-14 s. */
ALWAYS_INLINE u64 cubic_time(u64 time)
{
	return time * 1024 / 62500;
}

/* C x^3 in Q32 packets; at most 128 s. */
ALWAYS_INLINE u64 cubed(u64 x)
{
	x = min(x, (1 << 21) - 1);
	return (x * x * x >> 10) * 2 / 5;
}

/* Equation 2: the cube root of (origin - cwnd) / C, whose cube in 2^-42 s^3 has 10 bits more. */
ALWAYS_INLINE u32 cubic_k(u64 distance)
{
	u64 cube = min(distance, 1ULL << 52) * 5 / 2 << 10;

	return cube ? exp2_q32(log2_q32(cube) / 3) >> 32 : 0;
}

ALWAYS_INLINE void begin_epoch(struct cubic *cubic, u64 now, u64 cwnd)
{
	cubic->epoch_start = now;
	cubic->origin_point = max(cubic->w_max, cwnd);
	cubic->k = cubic_k(cubic->origin_point - cwnd);
	cubic->w_est = cwnd;
}

/* Growth for acknowledged packets, Q32. */
ALWAYS_INLINE u64 cubic_increase(struct cubic *cubic, u64 now, u32 min_rtt, u64 cwnd, u64 acked_cnt)
{
	u64 t, target;

	if (!cubic->epoch_start)
		begin_epoch(cubic, now, cwnd);
	t = cubic_time(now - cubic->epoch_start + min_rtt);
	target = t < cubic->k ? sat_sub(cubic->origin_point, cubed(cubic->k - t))
			      : cubic->origin_point + cubed(t - cubic->k);
	if (!cubic->w_max)
		target = max(target, cwnd + cwnd / 20);
	cubic->w_est += times(acked_cnt, ratio(Q32(9.0 / 17), cwnd));
	target = max(target, cubic->w_est);
	return times(acked_cnt, min(ratio(sat_sub(target, cwnd), cwnd), Q32(0.5)));
}

ALWAYS_INLINE u64 cubic_decrease(struct cubic *cubic, u64 cwnd)
{
	/* Fast convergence: (1 + beta) / 2. */
	cubic->w_max = cwnd < cubic->w_max ? scaled(cwnd, 85, 100) : cwnd;
	cubic->epoch_start = 0;
	return scaled(cwnd, 7, 10);
}
