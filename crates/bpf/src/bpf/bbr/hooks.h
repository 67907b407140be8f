/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the kernel calls, and the order of steps on every acknowledgement: the twin of Bbr in
 * crates/cc/src/bbr/frame.rs.
 */
#pragma once

ALWAYS_INLINE void update_drain(struct sock *sk, struct bbr *bbr, const struct ack *ack)
{
	struct frame *f = &bbr->frame;
	u32 target;

	if (f->state == STARTUP && f->full_ever) {
		f->state = DRAIN;
		f->drain_began = f->round;
		tcp_sk(sk)->snd_ssthresh = inflight(sk, bbr, max_bw_of(bbr), GAIN(1), ack->mss);
		on_drain(bbr);
	}
	if (f->state != DRAIN)
		return;
	target = inflight(sk, bbr, max_bw_of(bbr), GAIN(1), ack->mss);
	if (in_network(sk, f, ack->in_flight, bw_of(bbr), ack->mss) <= target ||
	    f->round - f->drain_began > PARAMS.drain_rounds)
		enter_probe_bw(bbr, ack);
}

ALWAYS_INLINE void exit_probe_rtt(struct sock *sk, struct bbr *bbr, const struct ack *ack)
{
	struct frame *f = &bbr->frame;

	f->lowest_at = ack->coarse_now;
	restore_cwnd(sk, f);
	f->state = STARTUP;
	after_probe_rtt(bbr, ack);
}

ALWAYS_INLINE void update_min_rtt(struct sock *sk, struct bbr *bbr, const struct ack *ack)
{
	struct frame *f = &bbr->frame;
	bool expired = observe_rtt(f, ack->coarse_now, ack->rtt, ack->is_delayed);

	if (expired && !f->idle_restart && f->state != PROBE_RTT) {
		f->state = PROBE_RTT;
		save_cwnd(sk, f, is_recovery(phase_before(bbr)));
		enter_probe_rtt(f, ack);
		on_probe_rtt(bbr, ack);
	}
	if (f->state == PROBE_RTT &&
	    hold_probe_rtt(f, ack, probe_rtt_cwnd(f, bw_of(bbr), ack->mss)))
		exit_probe_rtt(sk, bbr, ack);
	if (ack->rated && ack->rate_delivered)
		f->idle_restart = false;
}

SEC("struct_ops")
void HOOK(bbr_control, struct sock *sk, u32 seq, int flag, const struct rate_sample *rs)
{
	struct bbr *bbr = STATE_OF(sk);
	struct frame *f;
	struct ack ack;

	if (!bbr)
		return;
	f = &bbr->frame;
	take_ack(tcp_sk(sk), rs, &ack);
	update_model(sk, bbr, &ack);
	update_aggregation(sk, f, &ack, bw_of(bbr));
	update_full_pipe(sk, bbr, &ack);
	update_drain(sk, bbr, &ack);
	update_probe_bw(sk, bbr, &ack);
	update_min_rtt(sk, bbr, &ack);
	end_ack(bbr, &ack);

	set_gains(bbr);
	meet_rtt(sk, f, ack.mss);
	set_pacing(sk, f, bw_of(bbr), f->pacing_gain);
	update_window(sk, bbr, &ack);
}

SEC("struct_ops")
void HOOK(bbr_begin, struct sock *sk)
{
	struct bbr *bbr = NEW_STATE_OF(sk);

	tcp_sk(sk)->snd_ssthresh = TCP_INFINITE_SSTHRESH;
	if (!bbr)
		return;
	begin_frame(sk, &bbr->frame);
	begin_rules(sk, bbr);
	/* Without the fq queue the kernel paces inside TCP. */
	if (sk->sk_pacing_status == SK_PACING_NONE)
		sk->sk_pacing_status = SK_PACING_NEEDED;
}

/* An episode of loss begins, which the kernel leaves to BBR otherwise. */
SEC("struct_ops")
u32 HOOK(bbr_ssthresh, struct sock *sk)
{
	struct bbr *bbr = STATE_OF(sk);

	if (bbr)
		on_episode(sk, bbr);
	return tcp_sk(sk)->snd_ssthresh;
}

SEC("struct_ops")
void HOOK(bbr_set_state, struct sock *sk, u8 new_state)
{
	struct bbr *bbr = STATE_OF(sk);
	struct ack ack = {};

	if (!bbr || new_state != TCP_CA_Loss)
		return;
	take_facts(tcp_sk(sk), &ack);
	on_timeout(sk, bbr, &ack);
}

SEC("struct_ops")
u32 HOOK(bbr_undo_cwnd, struct sock *sk)
{
	struct bbr *bbr = STATE_OF(sk);
	struct ack ack = {};

	if (bbr) {
		take_facts(tcp_sk(sk), &ack);
		on_spurious_loss(sk, bbr, &ack);
	}
	return tcp_sk(sk)->snd_cwnd;
}

/* Data are sent again after the application had left the flow idle. */
SEC("struct_ops")
void HOOK(bbr_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct bbr *bbr = STATE_OF(sk);
	struct ack ack = {};
	struct frame *f;

	if (!bbr || event != CA_EVENT_TX_START || !tp->app_limited)
		return;
	take_facts(tp, &ack);
	f = &bbr->frame;
	f->idle_restart = true;
	restart_aggregation(f, ack.now);
	if (f->state == PROBE_RTT) {
		if (is_probe_rtt_time_over(f, ack.coarse_now))
			exit_probe_rtt(sk, bbr, &ack);
	} else if (f->state != STARTUP && f->state != DRAIN) {
		set_pacing(sk, f, bw_of(bbr), GAIN(1));
	}
}

SEC("struct_ops")
u32 HOOK(bbr_min_tso_segs, struct sock *sk)
{
	return least_burst(sk);
}

/* Room for three windows: BBR may raise the rate even while packets are being recovered. */
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
		.init = (void *)bbr_begin,                                                        \
		.cong_control = (void *)bbr_control,                                              \
		.ssthresh = (void *)bbr_ssthresh,                                                 \
		.undo_cwnd = (void *)bbr_undo_cwnd,                                               \
		.set_state = (void *)bbr_set_state,                                               \
		.cwnd_event = (void *)bbr_cwnd_event,                                             \
		.min_tso_segs = (void *)bbr_min_tso_segs,                                         \
		.sndbuf_expand = (void *)bbr_sndbuf_expand,                                       \
		.flags = TCP_CONG_NON_RESTRICTED,                                                 \
		.name = called,                                                                   \
	}
