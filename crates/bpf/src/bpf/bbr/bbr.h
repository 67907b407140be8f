/* SPDX-License-Identifier: GPL-2.0 */
/*
 * BBR's state, and the functions that differ between versions. A program defines struct bbr_version
 * before this header and these functions after it.
 */
#pragma once

struct bbr {
	struct bbr_common common;
	struct bbr_version version;
};

#ifdef NATIVE
static struct bbr native_bbr;
#define STATE_OF(sk) (&native_bbr)
#define NEW_STATE_OF(sk) (&native_bbr)
#else
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct bbr);
} states SEC(".maps");
#define STATE_OF(sk) ((struct bbr *)bpf_sk_storage_get(&states, sk, 0, 0))
#define NEW_STATE_OF(sk) \
	((struct bbr *)bpf_sk_storage_get(&states, sk, 0, BPF_SK_STORAGE_GET_F_CREATE))
#endif

/* BBR.bw and BBR.max_bw. */
ALWAYS_INLINE u64 bw_of(const struct bbr *bbr);
ALWAYS_INLINE u64 max_bw_of(const struct bbr *bbr);
/* Whether the flow is in the phase of ProbeBW with a gain above 1. */
ALWAYS_INLINE bool is_probe_bw_up(const struct bbr *bbr);

ALWAYS_INLINE void init_version(struct sock *sk, struct bbr *bbr);
/* The steps of an acknowledgement; bbr_main in ops.h has their order. */
ALWAYS_INLINE void update_model(struct sock *sk, struct bbr *bbr, const struct ack *ack);
ALWAYS_INLINE void check_full_bw_reached(struct sock *sk, struct bbr *bbr, const struct ack *ack);
ALWAYS_INLINE void update_probe_bw_cycle_phase(struct sock *sk, struct bbr *bbr, const struct ack *ack);
ALWAYS_INLINE void advance_latest_delivery_signals(struct bbr *bbr, const struct ack *ack);
ALWAYS_INLINE void update_gains(struct bbr *bbr);
ALWAYS_INLINE void set_cwnd(struct sock *sk, struct bbr *bbr, const struct ack *ack);
/* Transitions: Startup to Drain; into ProbeBW; into ProbeRTT; out of ProbeRTT. */
ALWAYS_INLINE void on_enter_drain(struct bbr *bbr);
ALWAYS_INLINE void enter_probe_bw(struct bbr *bbr, const struct ack *ack);
ALWAYS_INLINE void on_enter_probe_rtt(struct bbr *bbr, const struct ack *ack);
ALWAYS_INLINE void on_exit_probe_rtt(struct bbr *bbr, const struct ack *ack);
/* The draft's functions of these names. */
ALWAYS_INLINE void save_state_upon_loss(struct sock *sk, struct bbr *bbr);
ALWAYS_INLINE void on_enter_rto(struct sock *sk, struct bbr *bbr, const struct ack *ack);
ALWAYS_INLINE void handle_spurious_loss_detection(struct sock *sk, struct bbr *bbr, const struct ack *ack);

/* The draft's BBRInflight: packets in flight for gain * bw, with the quantization budget. */
ALWAYS_INLINE u32 inflight(const struct sock *sk, const struct bbr *bbr, u64 bw, u32 gain, u32 mss)
{
	return quantization_budget(sk, bdp(&bbr->common, bw, gain, mss), is_probe_bw_up(bbr), mss);
}
