//! The packets that were sent and are not known to be received or lost.

use crate::control::PacketResult;
use crate::feedback::Report;
use dumbbell_sim::EcnCodepoint;
use dumbbell_units::{Span, Time};
use std::collections::VecDeque;

/// A packet that was sent.
#[derive(Clone, Copy, Debug)]
struct SentPacket {
    at: Time,
    size: u32,
    state: PacketState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PacketState {
    Outstanding,
    /// A later packet was acknowledged at this time.
    Missing(Time),
    Lost(Time),
    Received,
}

/// Maximum time that a packet is remembered once a later one is acknowledged: losses are found to be
/// reordering until then.
const MEMORY: Span = Span::from_secs(2);
/// Maximum of the reordering window.
const MAX_REORDERING: Span = Span::from_secs(1);

/// The packets that were sent, and what reports say about them.
#[derive(Debug, Default)]
pub(crate) struct History {
    packets: VecDeque<SentPacket>,
    /// Number of the first of these.
    first: u64,
    /// The number after the highest one that was acknowledged.
    acked_end: u64,
    /// How long a packet may arrive after a later one: nothing until reordering is seen (SCReAMv2,
    /// "Detecting Lost Data Units").
    reordering_window: Span,
    in_flight: u64,
    newly_acked: u64,
    srtt: Option<Span>,
    pub(crate) lost: u64,
    pub(crate) delivered: u64,
    pub(crate) received: u64,
    pub(crate) latest_rtt: Option<Span>,
    pub(crate) min_rtt: Option<Span>,
    pub(crate) rtt_sum: (f64, u64),
}

impl History {
    /// The number of the next packet.
    pub(crate) fn next(&self) -> u64 {
        self.first + self.packets.len() as u64
    }

    /// The highest number that was acknowledged, or 0.
    pub(crate) fn last_acked(&self) -> u64 {
        self.acked_end.saturating_sub(1)
    }

    /// Bytes between the highest packet that was acknowledged and the highest that was sent.
    pub(crate) fn bytes_in_flight(&self) -> u64 {
        self.in_flight
    }

    /// Packets among these.
    pub(crate) fn packets_in_flight(&self) -> u64 {
        self.next() - self.acked_end
    }

    pub(crate) fn srtt(&self) -> Option<Span> {
        self.srtt
    }

    /// Bytes newly acknowledged by the latest report.
    pub(crate) fn bytes_newly_acked(&self) -> u64 {
        self.newly_acked
    }

    pub(crate) fn on_sent(&mut self, at: Time, size: u32) {
        self.packets.push_back(SentPacket { at, size, state: PacketState::Outstanding });
        self.in_flight += u64::from(size);
    }

    /// Processes a report: `results` gets the packets that are received or lost for the first time.
    pub(crate) fn on_report(
        &mut self,
        now: Time,
        report: &Report,
        results: &mut Vec<PacketResult>,
    ) {
        self.advance(now, report);
        let numbers = report.begin..;
        for (number, arrival) in numbers.zip(&report.arrivals) {
            let Some(packet) = number.checked_sub(self.first) else { continue };
            let Some(packet) = self.packets.get_mut(packet as usize) else { break };
            let Some(arrival) = arrival else { continue };
            match packet.state {
                PacketState::Received => continue,
                PacketState::Lost(since) => {
                    // Not lost, but late. The control has had a loss.
                    self.lost -= 1;
                    let late = now.since(since).min(MAX_REORDERING);
                    self.reordering_window = self.reordering_window.max(late);
                }
                PacketState::Outstanding | PacketState::Missing(_) => results.push(PacketResult {
                    number,
                    sent_at: packet.at,
                    size: packet.size,
                    arrived_at: Some(arrival.at),
                    ecn: arrival.ecn,
                }),
            }
            packet.state = PacketState::Received;
            self.received += 1;
            self.delivered += u64::from(packet.size);
        }
        self.detect_losses(now, results);
        results.sort_unstable_by_key(|result| result.number);
        self.forget(now);
    }

    /// Moves the end of what is acknowledged, and takes a sample of the round-trip time.
    fn advance(&mut self, now: Time, report: &Report) {
        self.newly_acked = 0;
        let last = report.arrivals.iter().rposition(Option::is_some);
        let Some((last, arrival)) = last.and_then(|at| Some((at as u64, report.arrivals[at]?)))
        else {
            return;
        };
        let end = (report.begin + last + 1).min(self.next());
        if end <= self.acked_end {
            return;
        }
        for number in self.acked_end..end {
            let packet = &mut self.packets[(number - self.first) as usize];
            self.newly_acked += u64::from(packet.size);
            if number + 1 < end && packet.state == PacketState::Outstanding {
                packet.state = PacketState::Missing(now);
            }
        }
        self.in_flight -= self.newly_acked;
        self.acked_end = end;
        let sent_at = self.packets[(end - 1 - self.first) as usize].at;
        let held = report.sent_at.since(arrival.at);
        self.on_rtt(now.since(sent_at).saturating_sub(held));
    }

    fn on_rtt(&mut self, rtt: Span) {
        self.latest_rtt = Some(rtt);
        self.min_rtt = Some(self.min_rtt.map_or(rtt, |min| min.min(rtt)));
        self.rtt_sum = (self.rtt_sum.0 + rtt.as_secs_f64(), self.rtt_sum.1 + 1);
        // RFC 6298, section 2: alpha = 1/8.
        self.srtt = Some(match self.srtt {
            None => rtt,
            Some(srtt) => Span::from_nanos((7 * srtt.as_nanos() + rtt.as_nanos()) / 8),
        });
    }

    fn detect_losses(&mut self, now: Time, results: &mut Vec<PacketResult>) {
        let window = self.reordering_window;
        let acked = (self.acked_end - self.first) as usize;
        for (number, packet) in (self.first..).zip(self.packets.iter_mut().take(acked)) {
            if let PacketState::Missing(since) = packet.state
                && now.since(since) >= window
            {
                packet.state = PacketState::Lost(since);
                self.lost += 1;
                results.push(PacketResult {
                    number,
                    sent_at: packet.at,
                    size: packet.size,
                    arrived_at: None,
                    ecn: EcnCodepoint::NotEct,
                });
            }
        }
    }

    fn forget(&mut self, now: Time) {
        while self.first < self.acked_end
            && let Some(packet) = self.packets.front()
            && match packet.state {
                PacketState::Received => true,
                PacketState::Lost(since) => now.since(since) > MEMORY,
                PacketState::Outstanding | PacketState::Missing(_) => false,
            }
        {
            self.packets.pop_front();
            self.first += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feedback::Arrival;

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    fn report(begin: u64, received: &[bool], sent: u64) -> Report {
        let arrival = Arrival { at: at(sent), ecn: EcnCodepoint::NotEct };
        let arrivals = received.iter().map(|is| is.then_some(arrival)).collect();
        Report { begin, arrivals, sent_at: at(sent) }
    }

    #[test]
    fn bytes_in_flight_end_at_the_highest_acknowledged_packet() {
        // SCReAMv2, "Status Update When Sending Data": SN-5 is acknowledged, five are in flight,
        // although one before it is missing.
        let mut history = History::default();
        (0..10).for_each(|number| history.on_sent(at(number), 1000));
        let mut results = Vec::new();
        history.on_report(at(100), &report(0, &[true, true, false, true, true], 50), &mut results);
        assert_eq!((history.bytes_in_flight(), history.bytes_newly_acked()), (5000, 5000));
        let lost: Vec<_> = results.iter().filter(|one| one.arrived_at.is_none()).collect();
        assert_eq!((lost.len(), lost[0].number, history.lost), (1, 2, 1));
        // From 4 ms to 100 ms without the 0 ms for which the report was held.
        assert_eq!(history.latest_rtt, Some(Span::from_millis(96)));
    }

    #[test]
    fn a_late_packet_widens_the_reordering_window() {
        let mut history = History::default();
        (0..6).for_each(|number| history.on_sent(at(number), 1000));
        let mut results = Vec::new();
        history.on_report(at(50), &report(0, &[true, false, true], 25), &mut results);
        history.on_report(at(70), &report(0, &[true, true, true, true], 45), &mut results);
        assert_eq!((history.lost, history.received), (0, 4));
        // The next gap is not a loss for 20 ms.
        results.clear();
        history.on_report(at(80), &report(4, &[false, true], 55), &mut results);
        assert_eq!(results.len(), 1);
        history.on_report(at(100), &report(4, &[false, true], 75), &mut results);
        assert_eq!((results[0].number, results[0].arrived_at), (4, None));
    }
}
