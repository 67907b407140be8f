/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A window algorithm made of a rule and slow start (RFC 5681): the port of crates/cc's Windowed.
 *
 * Before this header an algorithm defines
 *
 *	struct rule                                    its state, at most 88 bytes, zero at first
 *	s64 increase(sk, rule, cwnd, acked)            growth for `acked` packets
 *	u64 decrease(sk, rule, cwnd)                   the threshold after loss
 *	void on_timeout(sk, rule)                      a retransmission timeout
 *
 * and optionally macros
 *
 *	INIT(sk, rule)                                 the start of the connection
 *	OBSERVE(sk, rule, acked)                       for every acknowledgement
 *	SET_WINDOW(sk, rule, &cwnd, &ssthresh)         whether it set them, instead of increase
 *
 * and after it WINDOWED_OPS, with further members of tcp_congestion_ops if it has any. Windows and
 * growths are packets in Q32: snd_cwnd has the whole packets, `fraction` the rest.
 *
 * The kernel spreads a reduction over recovery (PRR), detects spurious reductions, and calls
 * cong_avoid outside of recovery only.
 */
#pragma once

#include "fixed.h"

#ifndef INIT
#define INIT(sk, rule)
#endif
#ifndef OBSERVE
#define OBSERVE(sk, rule, acked)
#endif
#ifndef SET_WINDOW
#define SET_WINDOW(sk, rule, cwnd, ssthresh) false
#endif

struct window {
	/* The window's fraction of a packet, Q32. First, as siblings read it there. */
	u64 fraction;
	/* The same of ssthresh. */
	u64 ssthresh_fraction;
	struct rule rule;
};

ALWAYS_INLINE u64 cwnd_of(struct sock *sk, const struct window *window)
{
	return (u64)tcp_sk(sk)->snd_cwnd << 32 | window->fraction;
}

ALWAYS_INLINE void set_window(struct sock *sk, struct window *window, u64 cwnd)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 packets = cwnd >> 32;

	tp->snd_cwnd = min(max(packets, 1), tp->snd_cwnd_clamp);
	window->fraction = (u32)cwnd;
}

SEC("struct_ops")
void HOOK(windowed_init, struct sock *sk)
{
	struct window *window = inet_csk_ca(sk);

	__builtin_memset(window, 0, sizeof(*window));
	INIT(sk, &window->rule);
}

SEC("struct_ops")
u32 HOOK(windowed_ssthresh, struct sock *sk)
{
	struct window *window = inet_csk_ca(sk);
	u64 threshold = decrease(sk, &window->rule, cwnd_of(sk, window));

	threshold = max(threshold, 2ULL << 32);
	window->ssthresh_fraction = (u32)threshold;
	/* The kernel reduces the window to ssthresh. */
	window->fraction = (u32)threshold;
	return threshold >> 32;
}

SEC("struct_ops")
void HOOK(windowed_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	struct window *window = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u64 cwnd, threshold, acked_cnt = (u64)acked << 32;

	OBSERVE(sk, &window->rule, acked);
	cwnd = cwnd_of(sk, window);
	threshold = (u64)tp->snd_ssthresh << 32 | window->ssthresh_fraction;
	if (SET_WINDOW(sk, &window->rule, &cwnd, &threshold)) {
		tp->snd_ssthresh = max(threshold, 2ULL << 32) >> 32;
		window->ssthresh_fraction = (u32)threshold;
		set_window(sk, window, cwnd);
		return;
	}
	if (!tcp_is_cwnd_limited(tp))
		return;
	if (cwnd < threshold) {
		u64 grown = min(cwnd + acked_cnt, threshold);

		/* Packets left over when ssthresh is reached count for congestion avoidance. */
		acked_cnt -= grown - cwnd;
		cwnd = grown;
	}
	if (acked_cnt) {
		s64 growth = increase(sk, &window->rule, cwnd, acked_cnt);

		/* OLIA's growth may be negative: the window is at least one packet. */
		cwnd = growth < 0 && cwnd < (1ULL << 32) - growth ? 1ULL << 32 : cwnd + growth;
	}
	set_window(sk, window, cwnd);
}

SEC("struct_ops")
void HOOK(windowed_set_state, struct sock *sk, u8 new_state)
{
	struct window *window = inet_csk_ca(sk);

	if (new_state == TCP_CA_Loss) {
		window->fraction = 0;
		on_timeout(sk, &window->rule);
	}
}

/* The reduction was spurious. */
SEC("struct_ops")
u32 HOOK(windowed_undo_cwnd, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);

	return max(tp->snd_cwnd, tp->prior_cwnd);
}

#ifdef NATIVE
#define WINDOWED_OPS(id, called, ...) WINDOWED_OPS_(id, called, , __VA_ARGS__)
#else
#define WINDOWED_OPS(id, called, ...) WINDOWED_OPS_(id, called, SEC(".struct_ops"), __VA_ARGS__)
#endif
#define WINDOWED_OPS_(id, called, section, ...)                                                   \
	section struct tcp_congestion_ops id = {                                                  \
		.init = (void *)windowed_init,                                                    \
		.ssthresh = (void *)windowed_ssthresh,                                            \
		.cong_avoid = (void *)windowed_cong_avoid,                                        \
		.set_state = (void *)windowed_set_state,                                          \
		.undo_cwnd = (void *)windowed_undo_cwnd,                                          \
		.flags = TCP_CONG_NON_RESTRICTED,                                                 \
		.name = called, __VA_ARGS__                                                       \
	}
