/* SPDX-License-Identifier: GPL-2.0 */
#pragma once

/* How a version heeds loss and probes. */
struct v3_params {
	u32 startup_full_loss_count;
	bool startup_exit_uses_inflight_latest;
	bool restores_undo_state;
	u32 up_cwnd_gain;
	/* UP ends with so many BDP in flight; 0 if when no more bandwidth comes of it. */
	u32 up_exit_inflight_gain;
	u32 down_pacing_gain;
	/* F-BBRv2: CUBIC is there if min_rtt is so many times the first one (0 if not watched for). */
	u32 cubic_min_rtt_ratio;
	u32 cruise_pacing_gain;
};
