/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The state when packets were sent (tx_in_flight, lost). Google's branch stores it in each packet and
 * calls BBR for each lost packet. The stock kernel does neither. Here a ring holds the state after
 * each acknowledgement; the packets delivered when a packet was sent (rs->prior_delivered, which the
 * kernel reports) select the entry. So in_flight is that of the last packet sent before the next
 * acknowledgement. Losses are judged once per acknowledgement, with the newest packet acknowledged
 * in place of the lost one.
 */
#pragma once

#include "state.h"

/* Reads the state of the newest packet acknowledged into tx, and completes the last entry. */
ALWAYS_INLINE void read_send_state(struct bbr *bbr, const struct ack *ack)
{
	struct bbr_version *r = &bbr->version;
	struct send_state *last = &r->send_states[r->last_send_state % SEND_STATES];
	struct send_state *found = &r->send_states[ack->prior_delivered % SEND_STATES];

	last->in_flight = ack->prior_in_flight;
	if (!ack->has_rate)
		return;
	if (found->delivered == ack->prior_delivered) {
		r->tx = *found;
	} else {
		/* Overwritten, as more than SEND_STATES packets are in flight: the round's start. */
		r->tx.in_flight = ack->prior_in_flight;
		r->tx.lost = r->round_lost;
	}
	r->tx.in_flight = max(r->tx.in_flight, 1);
}

ALWAYS_INLINE void write_send_state(struct bbr *bbr, const struct ack *ack)
{
	struct bbr_version *r = &bbr->version;
	struct send_state *next = &r->send_states[ack->delivered % SEND_STATES];

	r->last_send_state = ack->delivered;
	next->delivered = ack->delivered;
	next->lost = ack->lost;
	next->in_flight = ack->in_flight;
	if (bbr->common.round_start)
		r->round_lost = ack->lost;
}

/* Packets lost since the newest packet acknowledged was sent (rs->lost). */
ALWAYS_INLINE u32 lost_since(const struct bbr_version *r, const struct ack *ack)
{
	return ack->lost - r->tx.lost;
}

ALWAYS_INLINE bool is_loss_too_high(u32 lost, u32 in_flight)
{
	return (u64)lost * 100 > (u64)in_flight * LOSS_THRESH_PERCENT;
}

ALWAYS_INLINE bool is_inflight_too_high(const struct bbr_version *r, const struct ack *ack)
{
	return is_loss_too_high(lost_since(r, ack), r->tx.in_flight);
}
