/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The subflows of an MPTCP connection: the port of crates/cc's coupled.rs and Path::siblings.
 *
 * icsk_ulp_data of a subflow is its struct mptcp_subflow_context, which points to the connection,
 * which lists the contexts of all its subflows. Each subflow reads the windows and round-trip times
 * of the others at every acknowledgement; there are no copies.
 *
 * The list is read without its lock. Contexts are freed after an RCU grace period, in which no
 * program runs, and every read is checked (bpf_probe_read_kernel): if a subflow closes
 * meanwhile, at worst one acknowledgement uses a wrong alpha. A sum goes over the subflow
 * itself and those of the others that may send data and have a round-trip time.
 */
#pragma once

#define MAX_SUBFLOWS 8

struct subflow {
	/* Packets, in Q32; 0 where there is no such subflow. */
	u64 cwnd;
	/* Smoothed round-trip time, in eighths of a microsecond as the kernel keeps it. */
	u32 rtt;
	/* OLIA's l: packets delivered between losses; only OLIA sets it. */
	u64 packets;
	struct sock *sk;
};

/* The window of another subflow: icsk_ca_priv[0] is its fraction if it has the same algorithm. */
ALWAYS_INLINE u64 sibling_cwnd(struct sock *sk, const struct tcp_congestion_ops *ops)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u64 cwnd = (u64)READ(tp, snd_cwnd) << 32;

	if (READ(tp, inet_conn.icsk_ca_ops) == ops)
		cwnd += READ(tp, inet_conn.icsk_ca_priv[0]);
	return cwnd;
}

/* The first is the subflow itself. */
struct subflows {
	struct subflow all[MAX_SUBFLOWS];
};

ALWAYS_INLINE bool may_send(struct sock *sk)
{
	u8 state = READ(sk, __sk_common.skc_state);

	return state == TCP_ESTABLISHED || state == TCP_CLOSE_WAIT;
}

/*
 * Finds the subflows of sk's connection; cwnd is sk's window in Q32. Returns false while sk has no
 * round-trip time: its growth is Reno's then, as that of a single subflow.
 */
ALWAYS_INLINE bool find_subflows(struct sock *sk, u64 cwnd, struct subflows *subflows)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct mptcp_subflow_context *context;
	struct list_head *head, *node;
	struct mptcp_sock *msk;
	const struct tcp_congestion_ops *ops = tp->inet_conn.icsk_ca_ops;
	u32 found = 1;

	__builtin_memset(subflows, 0, sizeof(*subflows));
	if (!tp->srtt_us)
		return false;
	subflows->all[0] = (struct subflow){ cwnd, tp->srtt_us, 0, sk };
	if (!tp->is_mptcp)
		return true;
	context = tp->inet_conn.icsk_ulp_data;
	msk = context ? (struct mptcp_sock *)READ(context, conn) : 0;
	if (!msk)
		return true;
	head = &msk->conn_list;
	node = READ(head, next);
	/* Twice as many steps as subflows: some may be closing. */
	EACH(step, 2 * MAX_SUBFLOWS) {
		struct sock *other;
		u32 rtt;

		if (!node || node == head)
			break;
		context = (struct mptcp_subflow_context *)node;
		other = READ(context, tcp_sock);
		node = READ(node, next);
		if (!other || other == sk || !may_send(other))
			continue;
		rtt = READ(tcp_sk(other), srtt_us);
		if (rtt && found < MAX_SUBFLOWS)
			subflows->all[found++] = (struct subflow){ sibling_cwnd(other, ops), rtt, 0, other };
	}
	return true;
}

/*
 * LIA's and OLIA's sums, relative to one path: sum(w_i rtt / rtt_i), in Q20, as a window of few
 * packets on a path that is hundreds of times as long adds next to nothing. The division is by
 * parts: the product of a window of 2^22 packets in Q20 and a round-trip time of 2^27 us has 70 bits.
 */
ALWAYS_INLINE u64 window_at(const struct subflows *subflows, u32 rtt)
{
	u64 sum = 0;

	EACH(i, MAX_SUBFLOWS) {
		const struct subflow *subflow = &subflows->all[i];
		u64 high = (subflow->cwnd >> 22) * rtt, low = (subflow->cwnd >> 12 & 1023) * rtt;

		if (subflow->cwnd)
			sum += (high / subflow->rtt << 10) + ((high % subflow->rtt << 10) + low) / subflow->rtt;
	}
	return sum;
}

/*
 * acked w / (sum(w_i rtt / rtt_i))^2 for the path of this window and round-trip time, in Q32; the
 * papers write (w / rtt^2) / (sum(w_i / rtt_i))^2.
 */
ALWAYS_INLINE u64 pooled_growth(const struct subflows *subflows, u64 cwnd, u32 rtt, u64 acked)
{
	u64 sum = min(max(window_at(subflows, rtt), 1), (1ULL << 44) - 1);
	u64 share = (cwnd / sum << 20) + (cwnd % sum << 20) / sum;

	return ratio(times(acked, share), sum << 12);
}

/*
 * Whether a / rtt_a^2 is at least b / rtt_b^2, exactly, for a and b below 2^31: a rtt_b^2 and b rtt_a^2
 * are compared, in halves, as they may have 95 bits.
 */
__noinline bool is_at_least(u64 a, u32 rtt_a, u64 b, u32 rtt_b)
{
	u64 square_a = (u64)rtt_a * rtt_a, square_b = (u64)rtt_b * rtt_b;
	u64 low_a = a * (u32)square_b, low_b = b * (u32)square_a;
	u64 high_a = a * (square_b >> 32) + (low_a >> 32);
	u64 high_b = b * (square_a >> 32) + (low_b >> 32);

	return high_a > high_b || (high_a == high_b && (u32)low_a >= (u32)low_b);
}
