/*
 * What the congestion control modules of Linux 6.12 use of the kernel, for a program of their own: types,
 * fields and helpers under the kernel's names, written anew. A jiffy is 4 ms (HZ = 250, Debian's).
 */
#ifndef KERNEL_H
#define KERNEL_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;
typedef u8 __u8;
typedef u16 __u16;
typedef u32 __u32;
typedef u64 __u64;

#define U16_MAX 0xffffu
#define U32_MAX 0xffffffffu
#define U32_C(value) value##u
#define HZ 250
#define TCP_TS_HZ 1000
#define USEC_PER_MSEC 1000
#define USEC_PER_SEC 1000000
#define ICSK_CA_PRIV_SIZE 104
#define TCP_INFINITE_SSTHRESH 0x7fffffff

#define __read_mostly
#define __init
#define __exit
#define __pure
#define __bpf_kfunc
#define THIS_MODULE NULL
#define EXPORT_SYMBOL_GPL(symbol)
#define MODULE_AUTHOR(text)
#define MODULE_LICENSE(text)
#define MODULE_DESCRIPTION(text)
#define MODULE_VERSION(text)
#define MODULE_PARM_DESC(name, text)
#define module_param(name, type, mode)
#define module_exit(function)
/* A program begins a module by the name that it was compiled with. */
#define module_init(function) int MODULE_INIT(void) { return function(); }
#define BUILD_BUG_ON(condition) _Static_assert(!(condition), "too large")
#define pr_debug(...)
#define NET_INC_STATS(net, field)
#define NET_ADD_STATS(net, field, value)
#define unlikely(condition) (condition)
#define likely(condition) (condition)
#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

/* The larger and smaller of numbers of the usual common type, as C compares them. */
#define max(a, b) ((a) > (b) ? (a) : (b))
#define min(a, b) ((a) < (b) ? (a) : (b))
#define max3(a, b, c) max(max(a, b), c)
#define max_t(type, a, b) max((type)(a), (type)(b))
#define min_t(type, a, b) min((type)(a), (type)(b))
#define clamp(value, low, high) min(max(value, low), high)
#define min_not_zero(a, b) ((a) == 0 ? (b) : (b) == 0 ? (a) : min(a, b))
#define is_power_of_2(n) ((n) != 0 && ((n) & ((n) - 1)) == 0)
#define DIV_ROUND_CLOSEST(n, by) (((n) < 0 ? (n) - (by) / 2 : (n) + (by) / 2) / (by))
#define do_div(n, by) ((n) /= (by))
#define div64_u64(n, by) ((u64)(n) / (u64)(by))
#define div_u64(n, by) ((u64)(n) / (u32)(by))

#define GFP_NOWAIT 0
#define __GFP_NOWARN 0
#define kcalloc(count, size, flags) calloc(count, size)
#define kfree free

enum tcp_ca_state { TCP_CA_Open, TCP_CA_Disorder, TCP_CA_CWR, TCP_CA_Recovery, TCP_CA_Loss };
#define TCPF_CA_Open (1 << TCP_CA_Open)
#define TCPF_CA_Disorder (1 << TCP_CA_Disorder)
#define TCPF_CA_CWR (1 << TCP_CA_CWR)
#define TCPF_CA_Recovery (1 << TCP_CA_Recovery)
#define TCPF_CA_Loss (1 << TCP_CA_Loss)

enum tcp_ca_event {
	CA_EVENT_TX_START,
	CA_EVENT_CWND_RESTART,
	CA_EVENT_COMPLETE_CWR,
	CA_EVENT_LOSS,
	CA_EVENT_ECN_NO_CE,
	CA_EVENT_ECN_IS_CE,
};

#define CA_ACK_SLOWPATH 1

struct ack_sample {
	u32 pkts_acked;
	s32 rtt_us;
	u32 in_flight;
};

struct rate_sample {
	s32 delivered;
};

/* Only modules' get_info uses these. */
#define INET_DIAG_VEGASINFO 3
struct tcpvegas_info {
	u32 tcpv_enabled, tcpv_rttcnt, tcpv_rtt, tcpv_minrtt;
};
union tcp_cc_info {
	struct tcpvegas_info vegas;
};

struct sock;
struct tcp_congestion_ops {
	void (*init)(struct sock *sk);
	void (*release)(struct sock *sk);
	u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, u32 ack, u32 acked);
	void (*set_state)(struct sock *sk, u8 new_state);
	void (*cwnd_event)(struct sock *sk, enum tcp_ca_event event);
	void (*in_ack_event)(struct sock *sk, u32 flags);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	u32 (*undo_cwnd)(struct sock *sk);
	size_t (*get_info)(struct sock *sk, u32 ext, int *attr, union tcp_cc_info *info);
	void *owner;
	u32 flags;
	char name[16];
};

struct sock {
	int unused;
};

struct inet_connection_sock {
	struct sock sk;
	const struct tcp_congestion_ops *icsk_ca_ops;
	u8 icsk_ca_state;
	u64 icsk_ca_priv[ICSK_CA_PRIV_SIZE / sizeof(u64)];
};

struct tcp_options_received {
	u32 rcv_tsval, rcv_tsecr;
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	u64 tcp_mstamp;
	u32 snd_una, snd_nxt, mss_cache;
	u32 snd_cwnd, snd_cwnd_cnt, snd_cwnd_clamp, snd_ssthresh, prior_cwnd, prior_ssthresh, high_seq;
	u32 srtt_us, packets_out, sacked_out;
	bool is_cwnd_limited;
	struct tcp_options_received rx_opt;
};

#define inet_csk(sk) ((struct inet_connection_sock *)(sk))
#define inet_csk_ca(sk) ((void *)inet_csk(sk)->icsk_ca_priv)
#define tcp_sk(sk) ((struct tcp_sock *)(sk))
#define sock_net(sk) NULL
#define tcp_call_bpf(sk, op, count, arguments) (-1)

extern u64 now_ns;
#define jiffies ((unsigned long)(now_ns / (1000000000 / HZ)))
#define tcp_jiffies32 ((u32)jiffies)
#define time_after_eq(a, b) ((long)((a) - (b)) >= 0)
#define usecs_to_jiffies(us) (((u32)(us) + (1000000 / HZ - 1)) / (1000000 / HZ))
#define msecs_to_jiffies(ms) usecs_to_jiffies((ms) * 1000)
#define jiffies_to_usecs(j) ((j) * (1000000 / HZ))
#define tcp_time_stamp_ts(tp) ((u32)((tp)->tcp_mstamp / 1000))

#define before(a, b) ((s32)((u32)(a) - (u32)(b)) < 0)
#define after(a, b) before(b, a)
#define between(x, low, high) ((u32)(high) - (u32)(low) >= (u32)(x) - (u32)(low))

#define tcp_snd_cwnd(tp) ((tp)->snd_cwnd)
#define tcp_snd_cwnd_set(tp, value) ((tp)->snd_cwnd = (value))
#define tcp_in_slow_start(tp) ((tp)->snd_cwnd < (tp)->snd_ssthresh)
#define tcp_is_cwnd_limited(sk) (tcp_sk(sk)->is_cwnd_limited)
#define tcp_packets_in_flight(tp) ((tp)->packets_out)

u32 tcp_slow_start(struct tcp_sock *tp, u32 acked);
void tcp_cong_avoid_ai(struct tcp_sock *tp, u32 w, u32 acked);
void tcp_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked);
u32 tcp_reno_ssthresh(struct sock *sk);
u32 tcp_reno_undo_cwnd(struct sock *sk);
u32 tcp_current_ssthresh(struct sock *sk);
void tcp_enter_cwr(struct sock *sk);
int tcp_register_congestion_control(struct tcp_congestion_ops *ops);
void tcp_unregister_congestion_control(struct tcp_congestion_ops *ops);
u32 get_random_u32(void);
void get_random_bytes(void *bytes, size_t count);

#endif
