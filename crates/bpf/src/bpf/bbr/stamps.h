/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What was the case when packets were sent. Google's branch gives every packet a stamp of what was in
 * flight and lost then, and tells BBR of every lost packet. The stock kernel does neither. Here a ring
 * of what was the case after each acknowledgement stands in: a packet that was sent when so many
 * packets had been delivered (rs->prior_delivered, which the kernel does tell) has the entry of that
 * acknowledgement. So what was in flight is known as of the last packet sent before the next
 * acknowledgement, and losses are judged once an acknowledgement, with the newest packet
 * acknowledged in the lost one's place.
 */
#pragma once

#include "rules.h"

/* Takes the stamp of the newest packet acknowledged, and completes that of the last one. */
ALWAYS_INLINE void read_stamp(struct bbr *bbr, const struct ack *ack)
{
	struct rules *r = &bbr->rules;
	struct stamp *last = &r->stamps[r->last_stamp % STAMPS];
	struct stamp *found = &r->stamps[ack->prior_delivered % STAMPS];

	last->in_flight = ack->prior_in_flight;
	if (!ack->rated)
		return;
	if (found->delivered == ack->prior_delivered) {
		r->newest = *found;
	} else {
		/* Overwritten, as more than STAMPS packets are in flight: what the round began with. */
		r->newest.in_flight = ack->prior_in_flight;
		r->newest.lost = r->round_lost;
	}
	r->newest.in_flight = max(r->newest.in_flight, 1);
}

ALWAYS_INLINE void write_stamp(struct bbr *bbr, const struct ack *ack)
{
	struct rules *r = &bbr->rules;
	struct stamp *next = &r->stamps[ack->delivered % STAMPS];

	r->last_stamp = ack->delivered;
	next->delivered = ack->delivered;
	next->lost = ack->lost;
	next->in_flight = ack->in_flight;
	if (bbr->frame.round_start)
		r->round_lost = ack->lost;
}

/* Packets lost since the newest packet acknowledged was sent. */
ALWAYS_INLINE u32 lost_since(const struct rules *r, const struct ack *ack)
{
	return ack->lost - r->newest.lost;
}

ALWAYS_INLINE bool is_loss_too_high(u32 lost, u32 in_flight)
{
	return (u64)lost * 100 > (u64)in_flight * LOSS_THRESH_PERCENT;
}

ALWAYS_INLINE bool is_too_high(const struct rules *r, const struct ack *ack)
{
	return is_loss_too_high(lost_since(r, ack), r->newest.in_flight);
}
