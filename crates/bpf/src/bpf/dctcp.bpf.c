// SPDX-License-Identifier: GPL-2.0
/*
 * DCTCP (RFC 8257).
 *
 *	alpha <- (1 - 1/16) alpha + F / 16	once a window, of which the share F was marked
 *	cwnd <- cwnd (1 - alpha / 2)		on a mark, once a window
 *	cwnd <- cwnd / 2			on loss
 *
 * Growth is Reno's. Port of crates/cc/src/dctcp.rs with arithmetic=linux: whole packets, and alpha in
 * 1024ths.
 *
 * With accurate ECN (RFC 9768) the kernel counts the marks. With classic ECN an acknowledgement says only
 * whether there was one, so that the receiver, which then needs this program too, acknowledges as soon as the
 * mark changes (section 3.2).
 */
#include "kernel.h"

#define WHOLE_PACKETS 1
#define MAX_ALPHA 1024
#define G_SHIFT 4

struct dctcp {
	u32 alpha;
	/* The first packet sent in this window, and what had been delivered and marked when it began. */
	u32 next_seq;
	u32 old_delivered;
	u32 old_delivered_ce;
	/* The receiver's: the last packet's mark, and what was expected after it. */
	u32 ce_state;
	u32 prior_rcv_nxt;
};

/* What the receiver's acknowledgements echo with classic ECN. */
ALWAYS_INLINE void set_demand_cwr(struct tcp_sock *tp, u32 ce_state)
{
	tp->ecn_flags = ce_state ? tp->ecn_flags | TCP_ECN_DEMAND_CWR : tp->ecn_flags & ~TCP_ECN_DEMAND_CWR;
}

ALWAYS_INLINE void begin_window(const struct tcp_sock *tp, struct dctcp *ca)
{
	ca->next_seq = tp->snd_nxt;
	ca->old_delivered = tp->delivered;
	ca->old_delivered_ce = tp->delivered_ce;
}

SEC("struct_ops")
void HOOK(dctcp_init, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct dctcp *ca = inet_csk_ca(sk);

	__builtin_memset(ca, 0, sizeof(*ca));
	ca->alpha = MAX_ALPHA;
	ca->prior_rcv_nxt = tp->rcv_nxt;
	begin_window(tp, ca);
}

SEC("struct_ops")
void HOOK(dctcp_in_ack_event, struct sock *sk, u32 flags)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct dctcp *ca = inet_csk_ca(sk);
	u32 delivered, marked, forgotten;

	if ((s32)(tp->snd_una - ca->next_seq) < 0)
		return;
	delivered = tp->delivered - ca->old_delivered;
	marked = tp->delivered_ce - ca->old_delivered_ce;
	if (!delivered)
		return;
	forgotten = ca->alpha >> G_SHIFT;
	ca->alpha -= forgotten ? forgotten : ca->alpha;
	ca->alpha = min(ca->alpha + ((u64)marked * MAX_ALPHA >> G_SHIFT) / delivered, MAX_ALPHA);
	begin_window(tp, ca);
}

SEC("struct_ops")
u32 HOOK(dctcp_ssthresh, struct sock *sk)
{
	u32 cwnd = tcp_sk(sk)->snd_cwnd;
	struct dctcp *ca = inet_csk_ca(sk);

	return max(cwnd - ((u64)cwnd * ca->alpha) / (2 * MAX_ALPHA), 2);
}

ALWAYS_INLINE void halve(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);

	tp->snd_ssthresh = max(tp->snd_cwnd / 2, 2);
}

/* A recovery halves the window, whatever the marks. */
SEC("struct_ops")
void HOOK(dctcp_set_state, struct sock *sk, u8 new_state)
{
	if (new_state == TCP_CA_Recovery && BITFIELD(&tcp_sk(sk)->inet_conn, icsk_ca_state) != new_state)
		halve(sk);
}

/* The receiver's part: an acknowledgement of the packets before, then one of this packet at once. */
ALWAYS_INLINE void on_mark(struct sock *sk, u32 ce_state)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct inet_connection_sock *icsk = &tp->inet_conn;
	struct dctcp *ca = inet_csk_ca(sk);

	if (ca->ce_state != ce_state) {
		if (icsk->icsk_ack.pending & ICSK_ACK_TIMER) {
			set_demand_cwr(tp, ca->ce_state);
			bpf_tcp_send_ack(tp, ca->prior_rcv_nxt);
		}
		icsk->icsk_ack.pending |= ICSK_ACK_NOW;
	}
	ca->prior_rcv_nxt = tp->rcv_nxt;
	ca->ce_state = ce_state;
	set_demand_cwr(tp, ce_state);
}

SEC("struct_ops")
void HOOK(dctcp_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	switch (event) {
	case CA_EVENT_LOSS:
		halve(sk);
		break;
	case CA_EVENT_ECN_IS_CE:
	case CA_EVENT_ECN_NO_CE:
		on_mark(sk, event == CA_EVENT_ECN_IS_CE);
		break;
	default:
		break;
	}
}

SEC("struct_ops")
void HOOK(dctcp_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	tcp_reno_cong_avoid(sk, ack, acked);
}

SEC("struct_ops")
u32 HOOK(dctcp_undo_cwnd, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);

	return max(tp->snd_cwnd, tp->prior_cwnd);
}

#ifndef NATIVE
SEC(".struct_ops")
#endif
struct tcp_congestion_ops dctcp = {
	.init = (void *)dctcp_init,
	.ssthresh = (void *)dctcp_ssthresh,
	.cong_avoid = (void *)dctcp_cong_avoid,
	.in_ack_event = (void *)dctcp_in_ack_event,
	.set_state = (void *)dctcp_set_state,
	.cwnd_event = (void *)dctcp_cwnd_event,
	.undo_cwnd = (void *)dctcp_undo_cwnd,
	.flags = TCP_CONG_NON_RESTRICTED | TCP_CONG_NEEDS_ECN,
	.name = "db_dctcp",
};
