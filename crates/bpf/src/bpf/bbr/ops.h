/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The functions that the kernel calls. bbr_main has the order of steps on every acknowledgement.
 */
#pragma once

ALWAYS_INLINE void update_drain(struct sock *sk, struct bbr *bbr, const struct ack *ack)
{
	struct bbr_common *f = &bbr->common;
	u32 target;

	if (f->state == STARTUP && f->full_bw_reached) {
		f->state = DRAIN;
		f->drain_start_round = f->round;
		tcp_sk(sk)->snd_ssthresh = inflight(sk, bbr, max_bw_of(bbr), GAIN(1), ack->mss);
		on_enter_drain(bbr);
	}
	if (f->state != DRAIN)
		return;
	target = inflight(sk, bbr, max_bw_of(bbr), GAIN(1), ack->mss);
	if (packets_in_net_at_edt(sk, f, ack->in_flight, bw_of(bbr), ack->mss) <= target ||
	    f->round - f->drain_start_round > PARAMS.drain_max_rounds)
		enter_probe_bw(bbr, ack);
}

ALWAYS_INLINE void exit_probe_rtt(struct sock *sk, struct bbr *bbr, const struct ack *ack)
{
	struct bbr_common *f = &bbr->common;

	f->probe_rtt_min_stamp = ack->jiffies_now;
	restore_cwnd(sk, f);
	f->state = STARTUP;
	on_exit_probe_rtt(bbr, ack);
}

ALWAYS_INLINE void check_probe_rtt(struct sock *sk, struct bbr *bbr, const struct ack *ack)
{
	struct bbr_common *f = &bbr->common;
	bool expired = update_min_rtt(f, ack->jiffies_now, ack->rtt, ack->is_delayed);

	if (expired && !f->idle_restart && f->state != PROBE_RTT) {
		f->state = PROBE_RTT;
		save_cwnd(sk, f, true);
		enter_probe_rtt(f, ack);
		on_enter_probe_rtt(bbr, ack);
	}
	if (f->state == PROBE_RTT &&
	    handle_probe_rtt(f, ack, probe_rtt_cwnd(f, bw_of(bbr), ack->mss)))
		exit_probe_rtt(sk, bbr, ack);
	if (ack->has_rate && ack->rate_delivered)
		f->idle_restart = false;
}

SEC("struct_ops")
void HOOK(bbr_main, struct sock *sk, u32 seq, int flag, const struct rate_sample *rs)
{
	struct bbr *bbr = STATE_OF(sk);
	struct bbr_common *f;
	struct ack ack;

	if (!bbr)
		return;
	f = &bbr->common;
	read_ack(tcp_sk(sk), rs, &ack);
	update_model(sk, bbr, &ack);
	update_ack_aggregation(sk, f, &ack, bw_of(bbr));
	check_full_bw_reached(sk, bbr, &ack);
	update_drain(sk, bbr, &ack);
	update_probe_bw_cycle_phase(sk, bbr, &ack);
	check_probe_rtt(sk, bbr, &ack);
	advance_latest_delivery_signals(bbr, &ack);

	update_gains(bbr);
	init_pacing_rate_from_rtt(sk, f, ack.mss);
	set_pacing_rate_with_gain(sk, f, bw_of(bbr), f->pacing_gain);
	set_cwnd(sk, bbr, &ack);
}

SEC("struct_ops")
void HOOK(bbr_init, struct sock *sk)
{
	struct bbr *bbr = NEW_STATE_OF(sk);

	tcp_sk(sk)->snd_ssthresh = TCP_INFINITE_SSTHRESH;
	if (!bbr)
		return;
	init_common(sk, &bbr->common);
	init_version(sk, bbr);
	/* Without the fq qdisc the kernel paces inside TCP. */
	if (sk->sk_pacing_status == SK_PACING_NONE)
		sk->sk_pacing_status = SK_PACING_NEEDED;
}

/* Called when an episode of loss begins; ssthresh stays. */
SEC("struct_ops")
u32 HOOK(bbr_ssthresh, struct sock *sk)
{
	struct bbr *bbr = STATE_OF(sk);

	if (bbr)
		save_state_upon_loss(sk, bbr);
	return tcp_sk(sk)->snd_ssthresh;
}

SEC("struct_ops")
void HOOK(bbr_set_state, struct sock *sk, u8 new_state)
{
	struct bbr *bbr = STATE_OF(sk);
	struct ack ack = {};

	if (!bbr || new_state != TCP_CA_Loss)
		return;
	read_path(tcp_sk(sk), &ack);
	on_enter_rto(sk, bbr, &ack);
}

SEC("struct_ops")
u32 HOOK(bbr_undo_cwnd, struct sock *sk)
{
	struct bbr *bbr = STATE_OF(sk);
	struct ack ack = {};

	if (bbr) {
		read_path(tcp_sk(sk), &ack);
		handle_spurious_loss_detection(sk, bbr, &ack);
	}
	return tcp_sk(sk)->snd_cwnd;
}

/* Transmission restarts after the application was idle. */
SEC("struct_ops")
void HOOK(bbr_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct bbr *bbr = STATE_OF(sk);
	struct ack ack = {};
	struct bbr_common *f;

	if (!bbr || event != CA_EVENT_TX_START || !tp->app_limited)
		return;
	read_path(tp, &ack);
	f = &bbr->common;
	f->idle_restart = true;
	reset_ack_aggregation(f, ack.now);
	if (f->state == PROBE_RTT) {
		if (is_probe_rtt_done(f, ack.jiffies_now))
			exit_probe_rtt(sk, bbr, &ack);
	} else if (f->state != STARTUP && f->state != DRAIN) {
		set_pacing_rate_with_gain(sk, f, bw_of(bbr), GAIN(1));
	}
}

/* Three windows, as the rate may rise even in recovery. */
SEC("struct_ops")
u32 HOOK(bbr_sndbuf_expand, struct sock *sk)
{
	return 3;
}

#ifdef NATIVE
#define BBR_OPS(id, called) BBR_OPS_(id, called, )
#else
#define BBR_OPS(id, called) BBR_OPS_(id, called, SEC(".struct_ops"))
#endif
#define BBR_OPS_(id, called, section)                                                             \
	section struct tcp_congestion_ops id = {                                                  \
		.init = (void *)bbr_init,                                                        \
		.cong_control = (void *)bbr_main,                                              \
		.ssthresh = (void *)bbr_ssthresh,                                                 \
		.undo_cwnd = (void *)bbr_undo_cwnd,                                               \
		.set_state = (void *)bbr_set_state,                                               \
		.cwnd_event = (void *)bbr_cwnd_event,                                             \
		.sndbuf_expand = (void *)bbr_sndbuf_expand,                                       \
		.flags = TCP_CONG_NON_RESTRICTED,                                                 \
		.name = called,                                                                   \
	}
