// SPDX-License-Identifier: GPL-2.0
/*
 * F-BBRv2 (Cho and Cho, "Improvement of Bandwidth Fairness between TCP BBRv2 and CUBIC", J. KICS
 * 49(1), 2024, section IV, algorithm 1).
 *
 * BBRv2 leaves 15 % headroom, which CUBIC takes; it takes more where the queue is deeper. As CUBIC
 * never lets the queue run empty, not even ProbeRTT measures the path's propagation delay:
 *
 *	if RTprop_current > RTprop * 1.2 and state is ProbeBW_CRUISE: pacing_gain = 1.15
 *
 * RTprop is the first value of min_rtt after the connection began, RTprop_current the present one.
 * Everything else is BBRv2.
 *
 * Port of crates/cc/src/bbr/v3.rs with version::F2. Fixed point as in bbr2.bpf.c.
 */
#include "bbr/v2.h"

static const struct v3_params V3_PARAMS = {
	V2_PARAMS,
	.cubic_min_rtt_ratio = GAIN(1.2),
	.cruise_pacing_gain = GAIN(1.15),
};

#include "bbr/v3.h"

BBR_OPS(f_bbr2, "db_f_bbr2");
