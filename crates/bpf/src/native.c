// SPDX-License-Identifier: GPL-2.0
/*
 * Runs a program of src/bpf outside the kernel, built for this machine. Reads one event per line and
 * prints cwnd, ssthresh and pacing rate after each.
 *
 * Built with -DNATIVE -DPROGRAM='"bpf/lia.bpf.c"' -DOPS=lia. The columns of a line are those of
 * struct event, then four columns for each sibling.
 */
#include <stdio.h>
#include <string.h>

#include PROGRAM

/* Others but BBR keep the window's fraction of a packet, Q32, first in their state. */
#ifndef WHOLE_PACKETS
#define WHOLE_PACKETS 0
#endif

#define MAX_SIBLINGS 7

struct event {
	/* 'I'nit, 'A'ck, 'L'oss and 'E'CN echo (new episodes), 'T'imeout, 'U'ndo, 'S'ent. */
	char kind;
	/* Times in ns; phase by the numbers of enum tcp_ca_state. */
	u64 now, srtt, min_rtt, delivered, delivered_at, lost, in_flight, phase;
	/* Whether the window was full, and whether it counts as the limit in slow start. */
	u64 window_full, cwnd_limited;
	/* Of 'A'; `rated` says whether there is a rate sample. */
	u64 acked, losses, rtt, prior_in_flight, rated;
	u64 prior_delivered, rate_delivered, interval, app_limited;
	/* MSS, the first window; of 'L' and 'T' whether the episode is new, of 'S' whether from idle. */
	u64 mss, window, new_episode;
	/* The first unacknowledged packet, the next to be sent, and packets marked so far. */
	u64 una, next_seq, marked;
	u64 siblings;
};

u64 native_now_ns;

/* SplitMix64's 32 bits, as the Rust side draws them. */
u32 native_random(void)
{
	static u64 x = 1;
	u64 z = x += 0x9e3779b97f4a7c15;

	z = (z ^ (z >> 33)) * 0x62a9d9ed799705f5;
	z = (z ^ (z >> 28)) * 0xcb24d0a5c88c35b3;
	return z >> 32;
}

static struct tcp_sock connection;
static struct tcp_sock others[MAX_SIBLINGS];
static struct mptcp_sock msk;
static struct mptcp_subflow_context contexts[MAX_SIBLINGS + 1];

static struct sock *sk = (struct sock *)&connection;

static int read_event(struct event *e)
{
	return scanf(" %c %llu %llu %llu %llu %llu %llu %llu %llu %llu %llu %llu %llu %llu %llu %llu %llu "
		     "%llu %llu %llu %llu %llu %llu %llu %llu %llu %llu",
		     &e->kind, &e->now, &e->srtt, &e->min_rtt, &e->delivered, &e->delivered_at, &e->lost,
		     &e->in_flight, &e->phase, &e->window_full, &e->cwnd_limited, &e->acked, &e->losses, &e->rtt,
		     &e->prior_in_flight, &e->rated, &e->prior_delivered, &e->rate_delivered,
		     &e->interval, &e->app_limited, &e->mss, &e->window, &e->new_episode,
		     &e->una, &e->next_seq, &e->marked, &e->siblings) == 27;
}

/* Windows in Q32, so that what the program keeps beyond whole packets is seen too. */
static void set_sibling(struct tcp_sock *tp, struct mptcp_subflow_context *context)
{
	u64 window, srtt, since, between;

	if (scanf("%llu %llu %llu %llu", &window, &srtt, &since, &between) != 4)
		return;
	memset(tp, 0, sizeof(*tp));
	tp->inet_conn.icsk_inet.sk.__sk_common.skc_state = TCP_ESTABLISHED;
	tp->inet_conn.icsk_ca_ops = &OPS;
	tp->inet_conn.icsk_ca_priv[0] = (u32)window;
	/* Packets delivered at the last loss and at the one before (OLIA). */
	tp->inet_conn.icsk_ca_priv[2] = between;
	tp->inet_conn.icsk_ca_priv[3] = 0;
	tp->delivered = between + since;
	tp->snd_cwnd = window >> 32;
	tp->srtt_us = srtt * 8 / 1000;
	context->tcp_sock = (struct sock *)tp;
}

static void set_siblings(u64 count)
{
	struct list_head *last = &msk.conn_list;

	contexts[0].tcp_sock = sk;
	for (u64 i = 0; i <= count; i++) {
		contexts[i].conn = (struct sock *)&msk;
		if (i)
			set_sibling(&others[i - 1], &contexts[i]);
		last->next = &contexts[i].node;
		last = last->next;
	}
	last->next = &msk.conn_list;
	connection.is_mptcp = count > 0;
	connection.inet_conn.icsk_ulp_data = &contexts[0];
}

static void set_facts(const struct event *e)
{
	native_now_ns = e->now;
	connection.tcp_mstamp = e->now / 1000;
	connection.tcp_clock_cache = e->now;
	connection.delivered_mstamp = e->delivered_at / 1000;
	connection.delivered = e->delivered;
	connection.delivered_ce = e->marked;
	connection.lost = e->lost;
	connection.snd_una = e->una * e->mss;
	connection.snd_nxt = e->next_seq * e->mss;
	connection.srtt_us = e->srtt * 8 / 1000;
	connection.rtt_min.s[0].v = e->min_rtt ? e->min_rtt / 1000 : ~0;
	connection.packets_out = e->in_flight;
	connection.is_cwnd_limited = e->window_full;
	connection.max_packets_out = e->cwnd_limited ? ~0U / 2 : 0;
}

/* What the kernel has of Reno, net/ipv4/tcp_cong.c. */
static void tcp_cong_avoid_ai(struct tcp_sock *tp, u32 w, u32 acked)
{
	if (tp->snd_cwnd_cnt >= w) {
		tp->snd_cwnd_cnt = 0;
		tp->snd_cwnd++;
	}
	tp->snd_cwnd_cnt += acked;
	tp->snd_cwnd += tp->snd_cwnd_cnt / w;
	tp->snd_cwnd_cnt %= w;
}

void tcp_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (!tcp_is_cwnd_limited(tp))
		return;
	if (in_slow_start(tp)) {
		u32 before = tp->snd_cwnd;

		tp->snd_cwnd = min(before + acked, tp->snd_ssthresh);
		acked -= tp->snd_cwnd - before;
	}
	if (acked)
		tcp_cong_avoid_ai(tp, tp->snd_cwnd, acked);
}

static void begin(const struct event *e)
{
	connection.mss_cache = e->mss;
	connection.snd_cwnd = e->window;

	connection.snd_cwnd_clamp = ~0;
	connection.snd_ssthresh = TCP_INFINITE_SSTHRESH;
	connection.inet_conn.icsk_ca_ops = &OPS;
	connection.inet_conn.icsk_inet.sk.__sk_common.skc_state = TCP_ESTABLISHED;
	connection.inet_conn.icsk_inet.sk.sk_max_pacing_rate = ~0UL;
	if (OPS.init)
		OPS.init(sk);
}

static void reduce(const struct event *e, enum tcp_ca_state state)
{
	if (e->new_episode) {
		if (connection.inet_conn.icsk_ca_state == state) /* the episode before is over */
			connection.inet_conn.icsk_ca_state = TCP_CA_Open;
		connection.prior_cwnd = connection.snd_cwnd;
		connection.snd_cwnd_cnt = 0;
		connection.snd_ssthresh = OPS.ssthresh(sk);
	}
	/* Window algorithms come down to the threshold at once here. */
	if (state == TCP_CA_Loss && e->new_episode && OPS.cwnd_event)
		OPS.cwnd_event(sk, CA_EVENT_LOSS);
	if (OPS.set_state)
		OPS.set_state(sk, state);
	if (state == TCP_CA_Loss) {
		connection.snd_cwnd = e->in_flight + 1;
		connection.snd_cwnd_cnt = 0; /* at every timeout: tcp_enter_loss */
	} else if (!OPS.cong_control)
		connection.snd_cwnd = connection.snd_ssthresh;
	connection.inet_conn.icsk_ca_state = state;
}

static void acknowledge(const struct event *e)
{
	struct rate_sample rs = {
		.prior_delivered = e->prior_delivered,
		.delivered = e->rated ? (s32)e->rate_delivered : -1,
		.interval_us = e->rated ? (long)(e->interval / 1000) : -1,
		.rtt_us = e->rtt ? (long)(e->rtt / 1000) : -1,
		.losses = e->losses,
		.acked_sacked = e->acked,
		.prior_in_flight = e->prior_in_flight,
		.is_app_limited = e->app_limited,
	};

	if (OPS.pkts_acked)
		OPS.pkts_acked(sk, &(struct ack_sample){ .rtt_us = rs.rtt_us });
	if (OPS.set_state && connection.inet_conn.icsk_ca_state != e->phase)
		OPS.set_state(sk, e->phase);
	connection.inet_conn.icsk_ca_state = e->phase;
	if (OPS.in_ack_event)
		OPS.in_ack_event(sk, 0);
	if (OPS.cong_control)
		OPS.cong_control(sk, 0, 0, &rs);
	else if (e->acked && e->phase != TCP_CA_Recovery && e->phase != TCP_CA_CWR)
		OPS.cong_avoid(sk, 0, e->acked);
}

/* Pacing: the next packet departs when this one has had its time. */
static void sent(const struct event *e)
{
	unsigned long rate = connection.inet_conn.icsk_inet.sk.sk_pacing_rate;

	if (connection.tcp_wstamp_ns < e->now)
		connection.tcp_wstamp_ns = e->now;
	if (rate)
		connection.tcp_wstamp_ns += connection.mss_cache * 1000000000ULL / rate;
	connection.app_limited = e->new_episode;
	if (OPS.cwnd_event && e->new_episode)
		OPS.cwnd_event(sk, CA_EVENT_TX_START);
}

static void answer(void)
{
	u64 whole = OPS.cong_control || WHOLE_PACKETS;
	u64 fraction = whole ? 0 : (u32)connection.inet_conn.icsk_ca_priv[0];

	printf("%llu %u %lu\n", (u64)connection.snd_cwnd << 32 | fraction, connection.snd_ssthresh,
	       connection.inet_conn.icsk_inet.sk.sk_pacing_rate);
}

int main(void)
{
	struct event e;

	while (read_event(&e)) {
		set_siblings(e.siblings);
		set_facts(&e);
		switch (e.kind) {
		case 'I':
			begin(&e);
			break;
		case 'A':
			acknowledge(&e);
			break;
		case 'L':
			reduce(&e, TCP_CA_Recovery);
			break;
		case 'E':
			OPS.in_ack_event(sk, 0);
			reduce(&e, TCP_CA_CWR);
			break;
		case 'T':
			reduce(&e, TCP_CA_Loss);
			break;
		case 'U':
			connection.snd_cwnd = OPS.undo_cwnd(sk);
			break;
		case 'S':
			sent(&e);
			break;
		}
		answer();
	}
	return 0;
}
