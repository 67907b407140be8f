/* SPDX-License-Identifier: GPL-2.0 */
#pragma once

/* Parameters of v2 and v3: response to loss, and probing. */
struct v3_params {
	u32 startup_full_loss_count;
	bool startup_exit_uses_inflight_latest;
	bool restores_undo_state;
	u32 up_cwnd_gain;
	/* UP ends with this many BDP in flight; 0: when bandwidth stops growing. */
	u32 up_exit_inflight_gain;
	u32 down_pacing_gain;
	/* F-BBRv2: CUBIC is detected if min_rtt exceeds this multiple of the first one; 0: never. */
	u32 cubic_min_rtt_ratio;
	u32 cruise_pacing_gain;
};
