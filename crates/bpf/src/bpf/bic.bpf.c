// SPDX-License-Identifier: GPL-2.0
/*
 * BIC (Xu, Harfoush and Rhee, "Binary increase congestion control for fast long-distance networks",
 * INFOCOM 2004), as Linux's tcp_bic.c carries it out.
 *
 * After loss at a window W_max the window goes back to W_max by binary search, and beyond it in the
 * same steps mirrored. The growth of a round trip, packets, by the distance to W_max:
 *
 *	w <= low_window:		1			Reno
 *	w < W_max:			d = (W_max - w) / B
 *	  d > S_max			S_max			additive increase
 *	  1 < d <= S_max		d			binary search
 *	  d <= 1			B / smooth_part		so that it takes smooth_part round trips
 *	w >= W_max:
 *	  w < W_max + B			B / smooth_part
 *	  w < W_max + S_max (B - 1)	(w - W_max) / (B - 1)	max probing
 *	  else				S_max
 *	at least w / 20 until there has been loss
 *
 * with B 4, S_max 16, smooth_part 20, low_window 14 and d in whole packets. Unless it is Reno's, the
 * growth is multiplied by the mean number of packets per acknowledgement. It is at most w.
 * On loss
 *
 *	W_max = w (1 + beta) / 2 if w < W_max (fast convergence), else w
 *	w <- w / 2 up to low_window, else beta w
 *
 * with beta 819/1024.
 *
 * Port of crates/cc/src/bic.rs. Fixed point: windows in 2^-32 packets.
 */
#include "kernel.h"
#include "fixed.h"

#define B 4
#define S_MAX 16
#define SMOOTH_PART 20
#define PACKETS(n) ((u64)(n) << 32)
#define LOW_WINDOW PACKETS(14)
#define ACK_RATIO_SHIFT 4

struct rule {
	/* 0 before the first loss and after a timeout. */
	u64 w_max;
	/* tcp_bic.c's delayed_ack less its initial value of 2 packets, in sixteenths. */
	s32 beyond_two;
};

ALWAYS_INLINE u32 delayed_ack(const struct rule *rule)
{
	return (2 << ACK_RATIO_SHIFT) + rule->beyond_two;
}

/* bictcp_acked, in the kernel's whole packets. */
ALWAYS_INLINE void count_packets(struct sock *sk, struct rule *rule, u32 acked)
{
	struct inet_connection_sock *icsk = &tcp_sk(sk)->inet_conn;

	if (BITFIELD(icsk, icsk_ca_state) == TCP_CA_Open)
		rule->beyond_two += acked - (delayed_ack(rule) >> ACK_RATIO_SHIFT);
}
#define OBSERVE count_packets

ALWAYS_INLINE u64 per_round(const struct rule *rule, u64 w)
{
	u64 w_max = rule->w_max;

	if (w < w_max) {
		u64 distance = (w_max - w) / B >> 32;

		return distance <= 1 ? PACKETS(B) / SMOOTH_PART : PACKETS(min(distance, S_MAX));
	}
	if (w < w_max + PACKETS(B))
		return PACKETS(B) / SMOOTH_PART;
	if (w < w_max + PACKETS(S_MAX * (B - 1)))
		return (w - w_max) / (B - 1);
	return PACKETS(S_MAX);
}

ALWAYS_INLINE s64 increase(struct sock *sk, struct rule *rule, u64 cwnd, u64 acked)
{
	u64 growth;

	if (cwnd <= LOW_WINDOW)
		return ratio(acked, cwnd);
	growth = per_round(rule, cwnd);
	if (!rule->w_max)
		growth = max(growth, cwnd / 20);
	growth = growth * delayed_ack(rule) >> ACK_RATIO_SHIFT;
	return min(ratio(times(acked, growth), cwnd), acked);
}

ALWAYS_INLINE u64 decrease(struct sock *sk, struct rule *rule, u64 cwnd)
{
	bool yields = cwnd < rule->w_max;

	rule->w_max = yields ? scaled(cwnd, 1024 + 819, 2048) : cwnd;
	return cwnd <= LOW_WINDOW ? cwnd / 2 : scaled(cwnd, 819, 1024);
}

ALWAYS_INLINE void on_timeout(struct sock *sk, struct rule *rule)
{
	rule->w_max = 0;
	rule->beyond_two = 0;
}

#include "windowed.h"

WINDOWED_OPS(bic, "db_bic");
