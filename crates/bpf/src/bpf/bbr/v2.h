/* SPDX-License-Identifier: GPL-2.0 */
/*
 * BBRv2's numbers, which F-BBRv2 has too.
 */
#pragma once

#include "state.h"

static const struct params PARAMS = {
	.startup_pacing_gain = GAIN(2.8),
	.startup_cwnd_gain = GAIN(3),
	.drain_pacing_gain = GAIN(1 / 2.8),
	.drain_rounds = LATE_DRAIN,
	.cwnd_gain = GAIN(2),
	.probe_rtt_interval = 5000000,
	.probe_rtt_gain = GAIN(0.5),
	.startup_extra_acked_rounds = 1,
	.adds_allowance = false,
	.one_packet_below = 1200000 / 8,
};

#include "frame.h"
#include "caution.h"

/* The fields of struct caution. */
#define V2                                                                        \
	.full_loss_count = 8, .startup_keeps_delivered = false, .undo_returns = false, \
	.up_cwnd_gain = GAIN(2), .up_ends_inflight = GAIN(1.25), .down_pacing_gain = GAIN(0.75)
