/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Parameters of BBRv2, which F-BBRv2 has too.
 */
#pragma once

#include "state.h"

static const struct params PARAMS = {
	.startup_pacing_gain = GAIN(2.8),
	.startup_cwnd_gain = GAIN(3),
	.drain_pacing_gain = GAIN(1 / 2.8),
	.drain_max_rounds = NO_MAX_ROUNDS,
	.default_cwnd_gain = GAIN(2),
	.probe_rtt_interval = 5000000,
	.probe_rtt_cwnd_gain = GAIN(0.5),
	.startup_extra_acked_win_rtts = 1,
	.adds_offload_budget = false,
	.min_tso_rate = 1200000 / 8,
};

#include "common.h"
#include "v3/params.h"

/* The fields of struct v3_params. */
#define V2_PARAMS                                                                        \
	.startup_full_loss_count = 8, .startup_exit_uses_inflight_latest = false, .restores_undo_state = false, \
	.up_cwnd_gain = GAIN(2), .up_exit_inflight_gain = GAIN(1.25), .down_pacing_gain = GAIN(0.75)
