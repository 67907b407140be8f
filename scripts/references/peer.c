/*
 * A congestion control module of Linux as a program: reads the events of `crates/sim/examples/beside.rs` and
 * answers each with snd_cwnd and snd_ssthresh. Calls the module in the kernel's order (tcp_ack of Linux 6.12):
 * pkts_acked, in_ack_event, the change of state, cong_avoid. A reduction sets the window at once, as it does in
 * dumbbell; in the kernel PRR spreads it over the recovery. An episode begins before the acknowledgement that
 * shows it is measured; in the kernel after it.
 */
#include <stdio.h>

#include "kernel.h"

struct event {
	/* 'I'nit, 'A'ck, 'L'oss (a new episode), 'T'imeout, 'U'ndo, 'R'estart of the window after an idle period,
	   'S'ent with nothing in flight */
	char kind;
	s64 rtt;   /* ns; -1 for no sample */
	u64 now, una, next_seq, ca_state, in_flight, cwnd_limited, acked, srtt, delivered_since, mss, cwnd;
	/* Of 'I' the seed, of 'T' whether an episode begins, of 'R' the window, of 'S' whether the application
	   had no data. */
	u64 detail;
	u64 siblings;
};

/* Both clocks of the timestamps begin here, ms. */
#define TIMESTAMPS 1000000

u64 now_ns;
int module_entry(void);

static struct tcp_sock connection;
static struct tcp_congestion_ops *ops;
static struct sock *sk = (struct sock *)&connection;
static struct tcp_sock *tp = &connection;
static u64 una;
static u64 random_state;
static s64 least_rtt = -1;
static bool undone, undone_early;

int tcp_register_congestion_control(struct tcp_congestion_ops *module)
{
	ops = module;
	return 0;
}

void tcp_unregister_congestion_control(struct tcp_congestion_ops *module)
{
}

/* SplitMix64, from which dumbbell's CDG and NV draw. */
static u64 next_random(void)
{
	u64 z = random_state += 0x9e3779b97f4a7c15;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

u32 get_random_u32(void)
{
	return next_random() >> 32;
}

void get_random_bytes(void *bytes, size_t count)
{
	u64 random = next_random();

	memcpy(bytes, &random, count);
}

/* Slow start takes what it needs up to ssthresh, and returns what is left. */
u32 tcp_slow_start(struct tcp_sock *tp, u32 acked)
{
	u32 room = tp->snd_ssthresh - tp->snd_cwnd;
	u32 used = min(acked, room);

	tp->snd_cwnd = min(tp->snd_cwnd + used, tp->snd_cwnd_clamp);
	return acked - used;
}

/* One packet for each `w` acknowledged; what was counted with a higher `w` gives at most one. */
void tcp_cong_avoid_ai(struct tcp_sock *tp, u32 w, u32 acked)
{
	if (tp->snd_cwnd_cnt >= w) {
		tp->snd_cwnd_cnt = 0;
		tp->snd_cwnd++;
	}
	tp->snd_cwnd_cnt += acked;
	tp->snd_cwnd += tp->snd_cwnd_cnt / w;
	tp->snd_cwnd_cnt %= w;
	tp->snd_cwnd = min(tp->snd_cwnd, tp->snd_cwnd_clamp);
}

void tcp_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (!tcp_is_cwnd_limited(sk))
		return;
	if (tcp_in_slow_start(tp))
		acked = tcp_slow_start(tp, acked);
	if (acked)
		tcp_cong_avoid_ai(tp, tp->snd_cwnd, acked);
}

u32 tcp_reno_ssthresh(struct sock *sk)
{
	return max(tcp_sk(sk)->snd_cwnd / 2, 2u);
}

u32 tcp_reno_undo_cwnd(struct sock *sk)
{
	return max(tcp_sk(sk)->snd_cwnd, tcp_sk(sk)->prior_cwnd);
}

static bool is_reducing(void)
{
	return (1 << tp->inet_conn.icsk_ca_state) & (TCPF_CA_CWR | TCPF_CA_Recovery);
}

u32 tcp_current_ssthresh(struct sock *sk)
{
	if (is_reducing())
		return tp->snd_ssthresh;
	return max(tp->snd_ssthresh, tp->snd_cwnd / 2 + tp->snd_cwnd / 4);
}

static void set_state(u8 state)
{
	if (ops->set_state)
		ops->set_state(sk, state);
	tp->inet_conn.icsk_ca_state = state;
}

static void notify(enum tcp_ca_event event)
{
	if (ops->cwnd_event)
		ops->cwnd_event(sk, event);
}

/* tcp_init_cwnd_reduction. */
static void reduce(void)
{
	tp->high_seq = tp->snd_nxt;
	tp->prior_cwnd = tp->snd_cwnd;
	tp->snd_cwnd_cnt = 0;
	tp->snd_ssthresh = ops->ssthresh(sk);
	tp->snd_cwnd = tp->snd_ssthresh;
	undone = undone_early = false;
}

void tcp_enter_cwr(struct sock *sk)
{
	tp->prior_ssthresh = 0;
	if (tp->inet_conn.icsk_ca_state >= TCP_CA_CWR)
		return;
	reduce();
	set_state(TCP_CA_CWR);
}

/* tcp_enter_loss. */
static void time_out(const struct event *e)
{
	if (e->detail) {
		tp->prior_ssthresh = tcp_current_ssthresh(sk);
		tp->prior_cwnd = tp->snd_cwnd;
		tp->snd_ssthresh = ops->ssthresh(sk);
		notify(CA_EVENT_LOSS);
	}
	tp->snd_cwnd = e->in_flight + 1;
	tp->snd_cwnd_cnt = 0;
	set_state(TCP_CA_Loss);
}

/* tcp_undo_cwnd_reduction. */
static void undo(void)
{
	if (tp->prior_ssthresh) {
		tp->snd_cwnd = ops->undo_cwnd(sk);
		tp->snd_ssthresh = max(tp->snd_ssthresh, tp->prior_ssthresh);
	}
	undone = true;
	undone_early = before(tp->snd_una, tp->high_seq);
}

/* tcp_cwnd_restart. */
static void restart(const struct event *e)
{
	notify(CA_EVENT_CWND_RESTART);
	tp->snd_ssthresh = tcp_current_ssthresh(sk);
	tp->snd_cwnd = e->detail;
}

/* tcp_end_cwnd_reduction, which tcp_try_undo_partial and tcp_try_undo_dsack do without. */
static void end_reduction(void)
{
	if (undone_early)
		return;
	if (!undone)
		tp->snd_cwnd = tp->snd_ssthresh;
	notify(CA_EVENT_COMPLETE_CWR);
}

/* A state that the module began itself (CWR) lasts until a packet sent after it is acknowledged. */
static void follow_state(u8 state)
{
	u8 present = tp->inet_conn.icsk_ca_state;

	if (present == TCP_CA_CWR && state <= TCP_CA_Disorder && !after(tp->snd_una, tp->high_seq))
		return;
	if (is_reducing() && state <= TCP_CA_Disorder)
		end_reduction();
	if (present != state)
		set_state(state);
}

/* An episode may follow the one before within an acknowledgement. */
static void enter_recovery(void)
{
	if (tp->inet_conn.icsk_ca_state == TCP_CA_Recovery)
		follow_state(TCP_CA_Open);
	if (!is_reducing()) {
		tp->prior_ssthresh = tcp_current_ssthresh(sk);
		reduce();
	}
	set_state(TCP_CA_Recovery);
}

/* The receiver stamped the acknowledgement half a minimum round-trip time ago. */
static void stamp(const struct event *e)
{
	if (e->rtt < 0)
		return;
	if (least_rtt < 0 || e->rtt < least_rtt)
		least_rtt = e->rtt;
	tp->rx_opt.rcv_tsval = TIMESTAMPS + (e->now - least_rtt / 2) / 1000000;
	tp->rx_opt.rcv_tsecr = TIMESTAMPS + (e->now - e->rtt) / 1000000;
}

static void acknowledge(const struct event *e)
{
	struct ack_sample sample = {
		.pkts_acked = e->una - una,
		.rtt_us = e->rtt < 0 ? -1 : e->rtt / 1000,
		.in_flight = e->delivered_since * e->mss,
	};

	una = e->una;
	tp->sacked_out = e->ca_state != TCP_CA_Open;
	stamp(e);
	if (ops->pkts_acked)
		ops->pkts_acked(sk, &sample);
	if (ops->in_ack_event)
		ops->in_ack_event(sk, tp->sacked_out ? CA_ACK_SLOWPATH : 0);
	follow_state(e->ca_state);
	if (!is_reducing() && e->acked)
		ops->cong_avoid(sk, tp->snd_una, e->acked);
}

static void begin(const struct event *e)
{
	tp->snd_cwnd = e->cwnd;
	tp->snd_cwnd_clamp = ~0u;
	tp->snd_ssthresh = TCP_INFINITE_SSTHRESH;
	tp->inet_conn.icsk_ca_ops = ops;
	random_state = e->detail;
	una = e->una;
	if (ops->init)
		ops->init(sk);
}

static void set_facts(const struct event *e)
{
	now_ns = e->now;
	tp->mss_cache = e->mss;
	tp->tcp_mstamp = TIMESTAMPS * 1000ull + e->now / 1000;
	tp->snd_una = e->una * e->mss;
	tp->snd_nxt = e->next_seq * e->mss;
	tp->packets_out = e->in_flight;
	tp->is_cwnd_limited = e->cwnd_limited;
	tp->srtt_us = e->srtt / 1000 * 8;
}

static bool read_event(struct event *e)
{
	int read = scanf(" %c %ld %lu %lu %lu %lu %lu %lu %lu %lu %lu %lu %lu %lu %lu", &e->kind, &e->rtt,
			 &e->now, &e->una, &e->next_seq, &e->ca_state, &e->in_flight, &e->cwnd_limited,
			 &e->acked, &e->srtt, &e->delivered_since, &e->mss, &e->cwnd, &e->detail,
			 &e->siblings);

	/* The windows and round-trip times of other subflows, which these modules do not use. */
	for (u64 i = 0; read == 15 && i < e->siblings; i++)
		read += scanf("%*u %*u");
	return read == 15;
}

int main(void)
{
	struct event e;

	module_entry();
	while (read_event(&e)) {
		set_facts(&e);
		switch (e.kind) {
		case 'I': begin(&e); break;
		case 'A': acknowledge(&e); break;
		case 'L': enter_recovery(); break;
		case 'T': time_out(&e); break;
		case 'U': undo(); break;
		case 'R': restart(&e); break;
		case 'S': notify(CA_EVENT_TX_START); break;
		}
		if (tp->snd_ssthresh >= TCP_INFINITE_SSTHRESH)
			printf("%u inf\n", tp->snd_cwnd);
		else
			printf("%u %u\n", tp->snd_cwnd, tp->snd_ssthresh);
		fflush(stdout);
	}
	return 0;
}
