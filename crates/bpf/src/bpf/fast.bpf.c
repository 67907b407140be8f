// SPDX-License-Identifier: GPL-2.0
/*
 * FAST TCP (Wei, Jin, Low and Hegde, "FAST TCP: motivation, architecture, algorithms, performance",
 * IEEE/ACM ToN 14(6), 2006, equation 3).
 *
 * Once a round trip, with the round's mean RTT and the minimum baseRTT
 *
 *	w <- min(2 w, (1 - gamma) w + gamma (baseRTT / RTT w + alpha))
 *
 * which is w + gamma (alpha - queued), with queued = w (1 - baseRTT / RTT) packets in the queue. In
 * slow start only if that is less than w, which ends it. On loss w <- w / 2.
 *
 * Port of crates/cc/src/fast.rs with its defaults, alpha 200 and gamma 0.5. Differences from the paper are listed there.
 * Fixed point: windows in 2^-32 packets. RTTs in whole microseconds, as the kernel measures them.
 */
#include "kernel.h"
#include "fixed.h"

#define PACKETS(n) ((u64)(n) << 32)
#define ALPHA PACKETS(200)

struct rule {
	/* The acknowledgement of this byte ends the round, as in tcp_vegas.c. */
	u32 beg_snd_nxt;
	/* The present acknowledgement's RTT, us; not positive for none. */
	s32 rtt;
	/* The round's RTTs: their number and their sum, us. */
	u32 count;
	u64 sum;
};

ALWAYS_INLINE void start_round(struct sock *sk, struct rule *rule)
{
	rule->beg_snd_nxt = tcp_sk(sk)->snd_nxt;
	rule->count = 0;
	rule->sum = 0;
}
#define INIT start_round

/* The equation's window for a round that has samples. */
ALWAYS_INLINE u64 equation(struct sock *sk, const struct rule *rule, u64 cwnd)
{
	u64 base_sum = min((u64)tcp_sk(sk)->rtt_min.s[0].v * rule->count, rule->sum);
	u64 queued = times(cwnd, ratio(rule->sum - base_sum, rule->sum));
	u64 window = cwnd + ALPHA / 2 - queued / 2;

	return max(min(window, 2 * cwnd), PACKETS(2));
}

ALWAYS_INLINE bool fast_window(struct sock *sk, struct rule *rule, u64 *cwnd, u64 *ssthresh)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u64 window;

	if (rule->rtt > 0) {
		rule->sum += rule->rtt;
		rule->count++;
	}
	rule->rtt = 0;
	if ((s32)(tp->snd_una - rule->beg_snd_nxt) <= 0)
		return false;
	window = rule->count ? equation(sk, rule, *cwnd) : NEVER;
	start_round(sk, rule);
	if (window < *cwnd)
		*ssthresh = min(*ssthresh, window);
	else if (window == NEVER || *cwnd < *ssthresh || !tcp_is_cwnd_limited(tp))
		return false;
	*cwnd = window;
	return true;
}
#define SET_WINDOW fast_window

/* The equation is in fast_window. */
ALWAYS_INLINE s64 increase(struct sock *sk, struct rule *rule, u64 cwnd, u64 acked)
{
	return 0;
}

ALWAYS_INLINE u64 decrease(struct sock *sk, struct rule *rule, u64 cwnd)
{
	return cwnd / 2;
}

ALWAYS_INLINE void on_timeout(struct sock *sk, struct rule *rule)
{
}

#include "windowed.h"

/* Called before cong_avoid, in recovery too. */
SEC("struct_ops")
void HOOK(fast_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct window *window = inet_csk_ca(sk);

	window->rule.rtt = sample->rtt_us;
}

WINDOWED_OPS(fast, "db_fast", .pkts_acked = (void *)fast_pkts_acked);
