// SPDX-License-Identifier: GPL-2.0
/*
 * Scalable TCP (Kelly, "Scalable TCP: improving performance in highspeed wide area networks", 2003).
 *
 *	w <- w + 0.01		for every acknowledgement
 *	w <- w - 0.125 w	on loss
 *
 * Up to a window of 100 packets growth is Reno's, 1 / w, which is a hundredth there too, as in
 * Linux; the paper has Reno up to 16 packets, for loss as well.
 *
 * Port of crates/cc/src/stcp.rs. Fixed point: windows in 2^-32 packets.
 */
#include "kernel.h"
#include "fixed.h"

#define LOW_WINDOW 100

struct rule {
};

ALWAYS_INLINE s64 increase(struct sock *sk, struct rule *rule, u64 cwnd, u64 acked)
{
	return ratio(acked, min(cwnd, (u64)LOW_WINDOW << 32));
}

ALWAYS_INLINE u64 decrease(struct sock *sk, struct rule *rule, u64 cwnd)
{
	return cwnd - cwnd / 8;
}

ALWAYS_INLINE void on_timeout(struct sock *sk, struct rule *rule)
{
}

#include "windowed.h"

WINDOWED_OPS(stcp, "db_stcp");
