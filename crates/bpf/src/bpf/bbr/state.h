/* SPDX-License-Identifier: GPL-2.0 */
/*
 * State that all versions of BBR have, and the facts of an acknowledgement.
 *
 * Rates are bytes/s (of payload), times microseconds, windows whole packets, gains in 2^-16.
 * The state exceeds the 104 bytes of icsk_ca_priv, so it is in socket storage
 * (BPF_MAP_TYPE_SK_STORAGE).
 */
#pragma once

#include "../kernel.h"

#define GAIN(gain) ((u32)((gain) * 65536.0))
#define NONE 0xffffffffu
#define UNKNOWN_RTT NONE
/* 2.2 Tbit/s and 16.8 s: products stay within 64 bits. */
#define MAX_RATE (1ULL << 38)
#define MAX_TIME (1ULL << 24)

/* Parameters of all versions. */
#define FULL_BW_COUNT 3
#define MIN_PIPE_CWND 4
#define NOMINAL_RTT 1000
#define MIN_RTT_FILTER_LEN 10000000
#define PROBE_RTT_DURATION 200000
/* A jiffy in microseconds, with HZ = 250. */
#define JIFFY 4000
#define EXTRA_ACKED_WIN_RTTS 5
#define EXTRA_ACKED_MAX_US 100000
#define ACK_EPOCH_ACKED_RESET_THRESH (1 << 20)
#define NO_MAX_ROUNDS NONE

enum bbr_state { STARTUP, DRAIN, PROBE_BW, PROBE_RTT, PROBE_BW_UP, PROBE_BW_DOWN, PROBE_BW_CRUISE, PROBE_BW_REFILL };

/* Parameters that differ between versions; a constant of each program. */
struct params {
	u32 startup_pacing_gain;
	u32 startup_cwnd_gain;
	u32 drain_pacing_gain;
	/* Rounds after which Drain ends in any case; NO_MAX_ROUNDS for none. */
	u32 drain_max_rounds;
	u32 default_cwnd_gain;
	u32 probe_rtt_interval;
	/* In BDP; 0 leaves MIN_PIPE_CWND. */
	u32 probe_rtt_cwnd_gain;
	u32 startup_extra_acked_win_rtts;
	/* Whether offload_budget is added and the sum made even; else it is the minimum. */
	bool adds_offload_budget;
	/* Below this pacing rate a TSO segment has one packet. */
	u32 min_tso_rate;
};

/* State of all versions. */
struct bbr_common {
	u8 state;
	bool idle_restart;
	bool has_seen_rtt;
	/* Used for the BDP while min_rtt is unknown. */
	u32 initial_window;
	u32 pacing_gain;
	u32 cwnd_gain;
	u64 pacing_rate;

	/* Packet-timed rounds. */
	u32 round;
	u32 next_round_delivered;
	bool round_start;

	/* Detection of a full pipe. */
	bool full_bw_now;
	bool full_bw_reached;
	u32 full_bw_count;
	u64 full_bw;
	u32 drain_start_round;

	/* min_rtt and ProbeRTT. */
	bool probe_rtt_round_done;
	bool has_app_limited_range;
	u32 min_rtt;
	u32 probe_rtt_min_delay;
	u64 min_rtt_stamp;
	u64 probe_rtt_min_stamp;
	/* 0 while not known. */
	u64 probe_rtt_done_stamp;
	/* Samples in this range of packets delivered are limited by ProbeRTT. */
	u32 app_limited_from;
	u32 app_limited_until;

	/* Aggregation. */
	u64 extra_acked_interval_start;
	u32 extra_acked_delivered;
	u32 extra_acked[2];
	u32 extra_acked_win_idx;
	u32 extra_acked_win_rtts;

	/* cwnd before it was cut. */
	u32 prior_cwnd;
};

/* An acknowledgement, with the names of the Rust side's Path, Ack and RateSample. */
struct ack {
	u64 now;
	/* Of the latest jiffy. */
	u64 jiffies_now;
	u64 delivered_at;
	u32 delivered;
	u32 lost;
	u32 in_flight;
	u32 prior_in_flight;
	u32 acked;
	u32 losses;
	u32 mss;
	/* UNKNOWN_RTT where there is no sample. */
	u32 rtt;
	u8 ca_state;
	bool is_delayed;
	bool window_full;
	/* The rest is valid only if there is a rate sample. */
	bool has_rate;
	bool app_limited;
	u32 prior_delivered;
	u32 rate_delivered;
	u64 rate;
};

/* Whether a >= b, as sequence numbers modulo 2^32. */
ALWAYS_INLINE bool is_reached(u32 a, u32 b)
{
	return (s32)(a - b) >= 0;
}

ALWAYS_INLINE u32 packets_in_flight(const struct tcp_sock *tp)
{
	return tp->packets_out - tp->sacked_out - tp->lost_out + tp->retrans_out;
}

ALWAYS_INLINE bool is_recovery(u8 ca_state)
{
	return ca_state == TCP_CA_Recovery || ca_state == TCP_CA_Loss;
}

ALWAYS_INLINE u8 ca_state_of(struct tcp_sock *tp)
{
	struct inet_connection_sock *icsk = &tp->inet_conn;

	return BITFIELD(icsk, icsk_ca_state);
}

/* The socket's facts, with the kernel's times. */
ALWAYS_INLINE void read_path(struct tcp_sock *tp, struct ack *ack)
{
	ack->now = tp->tcp_mstamp;
	ack->jiffies_now = ack->now - ack->now % JIFFY;
	ack->delivered_at = tp->delivered_mstamp;
	ack->delivered = tp->delivered;
	ack->lost = tp->lost;
	ack->in_flight = packets_in_flight(tp);
	ack->mss = max(tp->mss_cache, 1);
	ack->ca_state = ca_state_of(tp);
}

ALWAYS_INLINE void read_ack(struct tcp_sock *tp, const struct rate_sample *rs, struct ack *ack)
{
	__builtin_memset(ack, 0, sizeof(*ack));
	read_path(tp, ack);
	ack->prior_in_flight = rs->prior_in_flight;
	ack->acked = rs->acked_sacked;
	ack->losses = rs->losses;
	ack->rtt = rs->rtt_us >= 0 ? (u32)rs->rtt_us : UNKNOWN_RTT;
	ack->is_delayed = rs->is_ack_delayed;
	ack->window_full = BITFIELD(tp, is_cwnd_limited);
	if (rs->delivered < 0 || rs->interval_us <= 0)
		return;
	ack->has_rate = true;
	ack->app_limited = rs->is_app_limited;
	ack->prior_delivered = rs->prior_delivered;
	ack->rate_delivered = rs->delivered;
	ack->rate = (u64)ack->rate_delivered * ack->mss * 1000000 / (u64)rs->interval_us;
	ack->rate = min(ack->rate, MAX_RATE);
}
