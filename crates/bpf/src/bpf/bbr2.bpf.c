// SPDX-License-Identifier: GPL-2.0
/*
 * BBRv2 (draft-cardwell-iccrg-bbr-congestion-control-02; "BBR v2: A Model-based Congestion Control",
 * IETF 104), of Google's Linux branch `v2alpha`, with the gains of Startup and Drain of Cho and Cho
 * (J. KICS 49(1), 2024, section III).
 *
 * As BBRv1 it paces at the maximum delivery rate and keeps about 2 BDP in flight, but loss bounds
 * both. Short term: a round with losses lowers rate and window to 0.7 of their values, or to what
 * the round delivered, until the next probe. Long term: a probe that lost more than 2 % of a flight
 * sets inflight_longterm, of which 15 % is headroom for others. It probes every 2 to 3 s, or after as many rounds as
 * Reno would:
 *
 *	Startup -> Drain -> DOWN (0.75) -> CRUISE (1) -> REFILL (1) -> UP (1.25) -> DOWN ...
 *
 * UP ends with 1.25 BDP in flight, or with loss. Every 5 s ProbeRTT leaves half a BDP for 200 ms.
 *
 * Port of crates/cc/src/bbr/v3.rs with version::V2; bbr/v3/send_state.h describes what the kernel
 * does not report. Fixed point: rates in whole bytes/s, times in microseconds, gains in
 * 2^-16.
 */
#include "bbr/v2.h"

static const struct v3_params V3_PARAMS = { V2_PARAMS };

#include "bbr/v3.h"

BBR_OPS(bbr2, "db_bbr2");
