/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The kernel's types, with the fields that the algorithms use.
 *
 * Only names matter: the loader finds each field in the BTF of the running kernel and patches its
 * offset into the program (CO-RE). So one object suits many kernels, without vmlinux.h. The native
 * build of the tests uses the same declarations.
 */
#pragma once

typedef unsigned char u8;
typedef signed char s8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef int s32;
typedef unsigned long long u64;
typedef long long s64;
typedef _Bool bool;

#define ALWAYS_INLINE static inline __attribute__((always_inline))

#define true 1
#define false 0

#ifdef NATIVE
#define KERNEL_TYPE
#define __noinline __attribute__((noinline))
#define SEC(name)
#define EACH(i, end) for (u32 i = 0; i < (end); i++)
#else
/* Types that libbpf's headers expect from vmlinux.h. */
typedef u8 __u8;
typedef s8 __s8;
typedef u16 __u16;
typedef short __s16;
typedef u32 __u32;
typedef s32 __s32;
typedef u64 __u64;
typedef s64 __s64;
typedef u16 __be16;
typedef u32 __be32;
typedef u64 __be64;
typedef u16 __sum16;
typedef u32 __wsum;
enum { BPF_MAP_TYPE_SK_STORAGE = 24 };
enum { BPF_F_NO_PREALLOC = 1, BPF_SK_STORAGE_GET_F_CREATE = 1, BPF_ANY = 0 };
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>
#define KERNEL_TYPE __attribute__((preserve_access_index))

/*
 * A loop over 0 <= i < end by the kernel's number iterator. The verifier checks its body once, not
 * once per iteration.
 */
struct bpf_iter_num {
	u64 opaque[1];
} __attribute__((aligned(8)));
extern int bpf_iter_num_new(struct bpf_iter_num *it, int start, int end) __ksym;
extern int *bpf_iter_num_next(struct bpf_iter_num *it) __ksym;
extern void bpf_iter_num_destroy(struct bpf_iter_num *it) __ksym;

ALWAYS_INLINE bool next_number(struct bpf_iter_num *it, u32 *i, u32 end)
{
	int *next = bpf_iter_num_next(it);

	if (!next)
		return false;
	*i = *next;
	return *i < end;
}

#define EACH(i, end)                                                                              \
	for (struct bpf_iter_num it_##i __attribute__((cleanup(bpf_iter_num_destroy))),           \
	     *once_##i = (bpf_iter_num_new(&it_##i, 0, end), (void)bpf_iter_num_destroy, &it_##i); \
	     once_##i; once_##i = 0)                                                              \
		for (u32 i; next_number(&it_##i, &i, end);)
#endif

/* Not set: above every measurement. */
#define NEVER (~0ULL)

enum tcp_ca_state { TCP_CA_Open, TCP_CA_Disorder, TCP_CA_CWR, TCP_CA_Recovery, TCP_CA_Loss };
enum tcp_ca_event {
	CA_EVENT_TX_START,
	CA_EVENT_CWND_RESTART,
	CA_EVENT_COMPLETE_CWR,
	CA_EVENT_LOSS,
	CA_EVENT_ECN_NO_CE,
	CA_EVENT_ECN_IS_CE,
};
enum { TCP_ESTABLISHED = 1, TCP_CLOSE_WAIT = 8 };
enum { SK_PACING_NONE, SK_PACING_NEEDED, SK_PACING_FQ };
enum { TCP_CONG_NON_RESTRICTED = 1, TCP_CONG_NEEDS_ECN = 2 };
enum { TCP_ECN_DEMAND_CWR = 4 };
enum { ICSK_ACK_TIMER = 2, ICSK_ACK_NOW = 16 };
#define TCP_INFINITE_SSTHRESH 0x7fffffff

struct list_head {
	struct list_head *next;
} KERNEL_TYPE;

struct sock_common {
	volatile unsigned char skc_state;
} KERNEL_TYPE;

struct sock {
	struct sock_common __sk_common;
	unsigned long sk_pacing_rate;
	unsigned long sk_max_pacing_rate;
	u32 sk_pacing_status;
} KERNEL_TYPE;

struct inet_sock {
	struct sock sk;
} KERNEL_TYPE;

struct inet_connection_sock {
	struct inet_sock icsk_inet;
	const struct tcp_congestion_ops *icsk_ca_ops;
	void *icsk_ulp_data;
	u8 icsk_ca_state : 5;
	struct {
		u8 pending;
	} icsk_ack;
	u64 icsk_ca_priv[13];
} KERNEL_TYPE;

struct minmax_sample {
	u32 v;
} KERNEL_TYPE;

struct minmax {
	struct minmax_sample s[3];
} KERNEL_TYPE;

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	u32 rcv_nxt;
	u32 snd_una;
	u32 snd_nxt;
	u32 mss_cache;
	u32 snd_cwnd;
	u32 snd_cwnd_cnt;
	u32 snd_cwnd_clamp;
	u32 snd_ssthresh;
	u32 prior_cwnd;
	u32 max_packets_out;
	u32 packets_out;
	u32 retrans_out;
	u32 sacked_out;
	u32 lost_out;
	u32 delivered;
	u32 delivered_ce;
	u32 lost;
	u32 app_limited;
	u32 srtt_us;
	struct minmax rtt_min;
	u64 tcp_mstamp;
	u64 delivered_mstamp;
	u64 tcp_wstamp_ns;
	u64 tcp_clock_cache;
	u8 ecn_flags;
	u8 is_cwnd_limited : 1;
	bool is_mptcp;
} KERNEL_TYPE;

struct ack_sample {
	s32 rtt_us;
} KERNEL_TYPE;

struct rate_sample {
	u32 prior_delivered;
	s32 delivered;
	long interval_us;
	long rtt_us;
	int losses;
	u32 acked_sacked;
	u32 prior_in_flight;
	bool is_app_limited;
	bool is_ack_delayed;
} KERNEL_TYPE;

struct mptcp_sock {
	struct inet_connection_sock sk;
	struct list_head conn_list;
} KERNEL_TYPE;

struct mptcp_subflow_context {
	struct list_head node;
	struct sock *conn;
	struct sock *tcp_sock;
} KERNEL_TYPE;

/* Only the members that programs here define; the loader matches them by name. */
struct tcp_congestion_ops {
	u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, u32 ack, u32 acked);
	void (*set_state)(struct sock *sk, u8 new_state);
	void (*cwnd_event)(struct sock *sk, enum tcp_ca_event event);
	void (*in_ack_event)(struct sock *sk, u32 flags);
	void (*cong_control)(struct sock *sk, u32 ack, int flag, const struct rate_sample *rs);
	u32 (*undo_cwnd)(struct sock *sk);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	u32 (*sndbuf_expand)(struct sock *sk);
	char name[16];
	u32 flags;
	void (*init)(struct sock *sk);
	void (*release)(struct sock *sk);
};

#ifdef NATIVE
/* The tests' trace takes the place of the kernel. */
extern u64 native_now_ns;
u32 native_random(void);
#define HOOK(name, ...) name(__VA_ARGS__)
#define READ(from, field) ((from)->field)
#define BITFIELD(from, field) ((from)->field)
#define bpf_ktime_get_ns() native_now_ns
#define bpf_get_prandom_u32() native_random()
#define bpf_tcp_send_ack(tp, rcv_nxt) ((void)(tp), (void)(rcv_nxt))
void tcp_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked);
#else
#define HOOK(name, ...) BPF_PROG(name, ##__VA_ARGS__)
#define READ(from, field) BPF_CORE_READ(from, field)
#define BITFIELD(from, field) BPF_CORE_READ_BITFIELD(from, field)
extern void tcp_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked) __ksym;
char LICENSE[] SEC("license") = "GPL";
#endif

ALWAYS_INLINE struct tcp_sock *tcp_sk(struct sock *sk)
{
	return (struct tcp_sock *)sk;
}

/* The algorithm's state in the socket: 104 bytes. */
ALWAYS_INLINE void *inet_csk_ca(struct sock *sk)
{
	return tcp_sk(sk)->inet_conn.icsk_ca_priv;
}

ALWAYS_INLINE u64 min(u64 a, u64 b)
{
	return a < b ? a : b;
}

ALWAYS_INLINE u64 max(u64 a, u64 b)
{
	return a > b ? a : b;
}

/* max(a - b, 0). */
ALWAYS_INLINE u64 sat_sub(u64 a, u64 b)
{
	return a > b ? a - b : 0;
}

ALWAYS_INLINE bool in_slow_start(const struct tcp_sock *tp)
{
	return tp->snd_cwnd < tp->snd_ssthresh;
}

/* Linux's function of the same name: whether the window limits the flow. */
ALWAYS_INLINE bool tcp_is_cwnd_limited(struct tcp_sock *tp)
{
	if (BITFIELD(tp, is_cwnd_limited))
		return true;
	return in_slow_start(tp) && tp->snd_cwnd < 2 * tp->max_packets_out;
}
