// SPDX-License-Identifier: GPL-2.0
/*
 * BBRv3 (draft-ietf-ccwg-bbr-06), with the gain of Drain of Google's Linux branch `v3`.
 *
 * As BBRv2, with these differences: Startup's gains are 2.77 and 2, and it ends upon 6 losses in a
 * round, not 8; Drain's gain is 0.35, for at most 3 rounds; UP ends when bandwidth stops
 * growing, has a window gain of 2.25, and is resumed if the loss that ended it was spurious; DOWN's gain
 * is 0.9.
 *
 * Port of crates/cc/src/bbr/v3.rs with version::V3; bbr/v3/send_state.h describes what the kernel
 * does not report. Fixed point as in bbr2.bpf.c.
 */
#include "bbr/state.h"

static const struct params PARAMS = {
	.startup_pacing_gain = GAIN(2.77),
	.startup_cwnd_gain = GAIN(2),
	.drain_pacing_gain = GAIN(0.35),
	.drain_max_rounds = 3,
	.default_cwnd_gain = GAIN(2),
	.probe_rtt_interval = 5000000,
	.probe_rtt_cwnd_gain = GAIN(0.5),
	.startup_extra_acked_win_rtts = 1,
	.adds_offload_budget = false,
	.min_tso_rate = 0,
};

#include "bbr/common.h"
#include "bbr/v3/params.h"

static const struct v3_params V3_PARAMS = {
	.startup_full_loss_count = 6,
	.startup_exit_uses_inflight_latest = true,
	.restores_undo_state = true,
	.up_cwnd_gain = GAIN(2.25),
	.up_exit_inflight_gain = 0,
	.down_pacing_gain = GAIN(0.9),
};

#include "bbr/v3.h"

BBR_OPS(bbr3, "db_bbr3");
