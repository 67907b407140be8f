//! The sender's reaction to ACKs, NAKs and the EXP timer.

use super::{Blocked, Sender};
use crate::packet::{Ack, AckKind, Nak};
use crate::rtt::RttEstimator;
use dumbbell_cc::ext::UdtReport;
use dumbbell_cc::{Ack as Acknowledged, CaState, CongestionControl, Signal};
use dumbbell_units::{Span, Time};
use std::ops::Range;

/// Upper limit of rates from the peer, packets/s.
const MAX_RATE: u32 = 1 << 30;

impl Sender {
    /// Handles an ACK. One of packets that were not sent is ignored.
    pub(crate) fn on_ack(&mut self, now: Time, kind: AckKind, ack: &Ack, rtt: &mut RttEstimator) {
        self.path.now = now;
        let Some(next) = self.sequence_space.index_near(ack.next, self.acked) else { return };
        if next > self.next {
            return;
        }
        if kind == AckKind::Light {
            if next > self.acked {
                let advanced = (next - self.acked).min(u64::from(u32::MAX)) as u32;
                self.flow_window = self.flow_window.saturating_sub(advanced);
                self.advance(next);
            }
            return;
        }
        if next >= self.acked {
            self.flow_window = ack.window;
            self.advance(next);
        }
        if next > self.data_acked {
            self.on_data_ack(next, kind, ack, rtt);
        }
    }

    /// Advances the acknowledged range to `next`.
    fn advance(&mut self, next: u64) {
        if next > self.acked {
            (self.last_activity, self.tail_probes) = (self.path.now, 0);
        }
        self.acked = next;
        self.losses.remove_below(next);
        self.next_poll_at = self.path.now.max(self.next_send_at);
    }

    /// Handles a short or full ACK of new packets: frees the send buffer, reports to the algorithm.
    fn on_data_ack(&mut self, next: u64, kind: AckKind, ack: &Ack, rtt: &mut RttEstimator) {
        let now = self.path.now;
        let advanced = next - self.data_acked;
        rtt.update(Span::from_micros(u64::from(ack.rtt_us)));
        if kind == AckKind::Full {
            let smooth = |old: u32, new: u32| match new {
                0 => old,
                new => ((7 * u64::from(old) + u64::from(new.min(MAX_RATE))) / 8) as u32,
            };
            self.arrival_rate = smooth(self.arrival_rate, ack.arrival_rate);
            self.capacity = smooth(self.capacity, ack.capacity);
        }
        let prior_in_flight = self.path.in_flight;
        let newest = self.in_flight[advanced as usize - 1];
        let acked = advanced as usize;
        let unsent = match self.unsent {
            0 => 0,
            _ => {
                self.in_flight.range(..acked).filter(|packet| packet.info.is_none()).count() as u32
            }
        };
        self.in_flight.drain(..acked);
        self.unsent -= unsent;
        let delivered = advanced as u32 - unsent;
        self.data_acked = next;
        self.source.release(next);
        self.path.una = next;
        self.path.delivered += u64::from(delivered);
        self.path.delivered_at = now;
        self.update_in_flight();
        if self.path.ca_state != CaState::Open && next >= self.episode_end {
            self.path.ca_state = CaState::Open;
        }
        let sample = newest.info.filter(|_| !newest.retransmitted);
        let sample = sample.map(|info| now.since(info.send_state.sent_at));
        if let Some(sample) = sample {
            self.on_rtt(sample);
        }
        self.path.cwnd_limited = self.blocked == Blocked::Cwnd;
        self.path.window_full = self.path.cwnd_limited;
        let mut report = UdtReport::default();
        report.advanced = advanced as u32;
        report.rtt = Span::from_micros(u64::from(ack.rtt_us));
        report.rtt_var = Span::from_micros(u64::from(ack.rtt_var_us));
        report.arrival_rate = f64::from(self.arrival_rate);
        report.capacity = f64::from(self.capacity);
        report.window = self.limits.flow_window;
        let acknowledged = Acknowledged::new(delivered)
            .with_rtt(sample)
            .with_prior_in_flight(prior_in_flight)
            .with_rate(self.rate.sample(&self.path, newest.info.as_ref()))
            .with_udt(report);
        self.cc.on_ack(&self.path, &acknowledged);
        self.update_control();
        if self.cc.is_ack_clocked() {
            self.send_immediately();
        }
        self.check_completion();
    }

    fn update_in_flight(&mut self) {
        let outstanding = (self.next - self.acked) as u32;
        self.path.in_flight = outstanding.saturating_sub(self.losses.len() as u32);
    }

    /// Handles a NAK, or a part of one. Ranges that were not sent, are reversed or do not ascend are
    /// ignored, and so is a NAK without new losses. The first part with some is reported. What a NAK names
    /// beyond the number of unacknowledged packets is ignored too: it names some of them again, for which a
    /// datagram of a few bytes would cost much time.
    pub(crate) fn on_nak(&mut self, now: Time, nak: &Nak) {
        self.path.now = now;
        self.nak_reported &= nak.continued;
        if !nak.continued || self.nak_left.0 != now {
            self.nak_left = (now, self.next - self.acked);
        }
        let mut first = None;
        let mut packets = 0;
        let mut after = self.acked;
        for (from, to) in nak.ranges() {
            let numbers = self.sequence_space.index_near(from, self.acked);
            let Some((from, to)) = numbers.zip(self.sequence_space.index_near(to, self.acked))
            else {
                continue;
            };
            let lost = from.max(after)..to + 1;
            if to >= self.next || lost.is_empty() {
                continue;
            }
            let Some(left) = self.nak_left.1.checked_sub(lost.end - lost.start) else { continue };
            (after, self.nak_left.1) = (lost.end, left);
            let new = self.mark_lost(lost.clone());
            if new > 0 {
                first = first.or(Some(lost.start));
                packets += lost.end - lost.start;
                self.stats.lost += new;
                self.path.lost += new;
            }
        }
        let Some(first) = first else { return };
        self.update_in_flight();
        if !std::mem::replace(&mut self.nak_reported, true) {
            self.report_congestion(Signal::Loss, packets as u32, first);
            // "The lost packet should be sent out immediately" (CUDT::processCtrl).
            self.send_immediately();
        }
    }

    /// Marks packets for retransmission. Returns the number of newly marked ones. Packets that were
    /// retransmitted less than a minimum RTT ago are skipped: the NAK predates that transmission.
    fn mark_lost(&mut self, lost: Range<u64>) -> u64 {
        let (mut new, mut from) = (0, lost.start);
        let recent = self.path.now - self.path.min_rtt.unwrap_or(Span::ZERO);
        for packet in lost.clone() {
            let sent = &self.in_flight[(packet - self.data_acked) as usize];
            if sent.retransmitted && sent.info.is_some_and(|info| info.send_state.sent_at > recent)
            {
                new += self.losses.insert(from..packet);
                from = packet + 1;
            }
        }
        new + self.losses.insert(from..lost.end)
    }

    /// Allows the next packet immediately.
    fn send_immediately(&mut self) {
        self.next_send_at = self.next_send_at.min(self.path.now);
        self.next_poll_at = self.path.now;
    }

    /// Handles an expiry of the EXP timer: all unacknowledged packets are retransmitted. `false` if
    /// there are none.
    pub(crate) fn on_expiry(&mut self, now: Time) -> bool {
        self.path.now = now;
        if !self.has_unacked() {
            return false;
        }
        self.stats.timeouts += 1;
        if self.losses.len() == 0 {
            let new = self.losses.insert(self.acked..self.next);
            self.stats.lost += new;
            self.path.lost += new;
            self.update_in_flight();
        }
        self.report_congestion(Signal::Timeout, (self.next - self.acked) as u32, self.acked);
        self.send_immediately();
        true
    }

    fn check_completion(&mut self) {
        if self.stats.completed.is_none() && Some(self.data_acked) == self.source.total_packets() {
            self.stats.completed = Some(self.path.now);
        }
    }
}
