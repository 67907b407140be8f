/* SPDX-License-Identifier: GPL-2.0 */
#pragma once

/* How a version heeds loss and probes. */
struct caution {
	u32 full_loss_count;
	bool startup_keeps_delivered;
	bool undo_returns;
	u32 up_cwnd_gain;
	/* UP ends with so many BDP in flight; 0 if when no more bandwidth comes of it. */
	u32 up_ends_inflight;
	u32 down_pacing_gain;
	/* F-BBRv2: CUBIC is there if min_rtt is so many times the first one (0 if not watched for). */
	u32 cubic_threshold;
	u32 cruise_pacing_gain;
};
