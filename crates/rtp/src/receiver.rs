//! The receiver: completes frames and reports arrivals.

use crate::feedback::{Arrival, Report};
use crate::frames::Frames;
use crate::packet::{RTP_HEADER, RtpPacket, extended};
use dumbbell_sim::{DatagramEndpoint, EcnCodepoint, FlowRow, SeriesRow};
use dumbbell_units::{Span, Time};
use std::collections::{BTreeMap, VecDeque};

/// A report leaves after at most so many packets (SCReAMv2, "Receiver Requirements on Feedback
/// Intensity").
const MAX_UNREPORTED: u64 = 16;
/// A report covers the latest packets, so many at least, so that each is in two reports or more
/// (SCReAMv2, "Discussion").
const COVERED: u64 = 32;
/// Maximum number of packets that are remembered: a report on all of them fills an Ethernet packet. It
/// has 20 bytes and 2 for each, and the headers of IPv4 and UDP have 28.
const MAX_COVERED: usize = (1500 - 28 - 20) / 2;
/// Incomplete frames that are remembered.
const MAX_INCOMPLETE: usize = 256;

/// The end that receives media.
pub(crate) struct MediaReceiver {
    frames: Frames,
    interval: Span,
    /// Arrivals from `first` on.
    arrivals: VecDeque<Option<Arrival>>,
    first: u64,
    /// The first packet that no report covers.
    unreported: u64,
    /// Packets that arrived since the last report.
    since_report: u64,
    /// When the next report is due; `Time::MAX` if nothing is to be reported.
    due: Time,
    /// Packets of incomplete frames that have arrived, by frame.
    incomplete: BTreeMap<u32, u16>,
    received: u64,
}

impl MediaReceiver {
    pub(crate) fn new(frames: Frames, interval: Span) -> MediaReceiver {
        MediaReceiver {
            frames,
            interval,
            arrivals: VecDeque::new(),
            first: 0,
            unreported: 0,
            since_report: 0,
            due: Time::MAX,
            incomplete: BTreeMap::new(),
            received: 0,
        }
    }

    /// Records an arrival; returns whether it is the first of its packet.
    fn record(&mut self, number: u64, arrival: Arrival) -> bool {
        let Some(place) = number.checked_sub(self.first) else { return false };
        let place = place as usize;
        if place >= self.arrivals.len() {
            self.arrivals.resize(place + 1, None);
        }
        let is_new = self.arrivals[place].is_none();
        self.arrivals[place].get_or_insert(arrival);
        while self.arrivals.len() > MAX_COVERED {
            self.arrivals.pop_front();
            self.first += 1;
        }
        is_new
    }

    fn complete(&mut self, packet: &RtpPacket, now: Time) {
        let arrived = self.incomplete.entry(packet.frame).or_default();
        *arrived += 1;
        if *arrived >= packet.packets {
            self.incomplete.remove(&packet.frame);
            self.frames.completed(packet.frame, now);
        }
        if self.incomplete.len() > MAX_INCOMPLETE {
            self.incomplete.pop_first();
        }
    }

    fn report(&mut self, now: Time) -> Report {
        let end = self.first + self.arrivals.len() as u64;
        let begin = self.unreported.min(end.saturating_sub(COVERED)).max(self.first);
        let arrivals = self.arrivals.iter().skip((begin - self.first) as usize).copied().collect();
        self.unreported = end;
        self.since_report = 0;
        self.due = Time::MAX;
        while self.first + 2 * COVERED < end {
            self.arrivals.pop_front();
            self.first += 1;
        }
        Report { begin, arrivals, sent_at: now }
    }
}

impl DatagramEndpoint for MediaReceiver {
    fn handle(&mut self, now: Time, payload: &[u8], ecn: EcnCodepoint) {
        let Some(packet) = RtpPacket::read(payload) else { return };
        let last = (self.first + self.arrivals.len() as u64).saturating_sub(1);
        if !self.record(extended(packet.number, last), Arrival { at: now, ecn }) {
            return;
        }
        self.received += (payload.len() as u64).saturating_sub(u64::from(RTP_HEADER));
        self.since_report += 1;
        let is_due = packet.marker || self.since_report >= MAX_UNREPORTED;
        self.due = self.due.min(if is_due { now } else { now + self.interval });
        self.complete(&packet, now);
    }

    fn poll(&mut self, now: Time, payload: &mut Vec<u8>) -> Option<EcnCodepoint> {
        if now < self.due {
            return None;
        }
        self.report(now).write(payload);
        Some(EcnCodepoint::NotEct)
    }

    fn next_timeout(&self) -> Time {
        self.due
    }

    fn sample(&self, row: &mut SeriesRow) {
        row.received = self.received;
    }

    fn finish(&self, row: &mut FlowRow) {
        row.received = self.received;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::MediaControl;
    use crate::gcc::Gcc;
    use crate::options::RtpOptions;
    use crate::scream::Scream;
    use crate::sender::{Load, MediaSender};
    use dumbbell_sim::Draws;
    use dumbbell_units::Rate;

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    fn receiver() -> MediaReceiver {
        MediaReceiver::new(Frames::default(), Span::from_millis(40))
    }

    #[test]
    fn a_report_after_a_long_outage_fits_into_an_ethernet_packet() {
        let mut receiver = receiver();
        for number in [0, 20_000] {
            let packet =
                RtpPacket { number, timestamp: 0, marker: true, frame: 0, place: 0, packets: 1 };
            let (mut media, mut report) = (Vec::new(), Vec::new());
            packet.write(1200, &mut media);
            receiver.handle(at(1), &media, EcnCodepoint::Ect1);
            assert!(receiver.poll(at(1), &mut report).is_some());
            assert!(report.len() + 28 <= 1500, "{} bytes", report.len());
            let read = Report::read(&report, 0, at(1)).expect("a report");
            assert_eq!(read.begin + read.arrivals.len() as u64, u64::from(number) + 1);
            assert!(read.arrivals.last().is_some_and(Option::is_some));
        }
    }

    /// Sends media for 20 s to a peer of which every report and every packet is changed at random.
    fn target_rate_with_forgeries(control: Box<dyn MediaControl>, seed: u64) -> f64 {
        let max_rates = vec![(Span::ZERO, Rate::from_bits_per_sec(2e6))];
        let load = Load { start: Time::ZERO, stop: Time::MAX, max_rates };
        let options = RtpOptions::default();
        let mut sender = MediaSender::new(control, &options, load, Frames::default(), seed);
        let mut receiver = receiver();
        let mut draws = Draws::new(seed);
        let mut below = move |count: usize| (draws.uniform() * count as f64) as usize % count;
        for millis in 0..20_000 {
            let (now, mut bytes) = (at(millis), Vec::new());
            while sender.poll(now, &mut bytes).is_some() {
                let forged = below(bytes.len());
                bytes[forged.min(below(24))] = below(256) as u8;
                receiver.handle(now, &bytes, EcnCodepoint::Ce);
                bytes.clear();
            }
            while receiver.poll(now, &mut bytes).is_some() {
                for _ in 0..below(4) {
                    let place = below(bytes.len());
                    bytes[place] = below(256) as u8;
                }
                bytes.truncate(bytes.len() - below(2) * below(8));
                sender.handle(now, &bytes, EcnCodepoint::NotEct);
                bytes.clear();
            }
        }
        let mut target = f64::NAN;
        sender.inspect(&mut |shown| {
            if shown.name == "target_bitrate" {
                target = 8.0 * shown.value;
            }
        });
        target
    }

    #[test]
    fn forged_packets_and_reports_keep_the_rate_within_its_limits() {
        let options = RtpOptions::default();
        for seed in 1..=3 {
            for control in [
                Box::new(Gcc::new(&options)) as Box<dyn MediaControl>,
                Box::new(Scream::new(&options)),
            ] {
                let target = target_rate_with_forgeries(control, seed);
                assert!((150e3..=2e6).contains(&target), "{target}");
            }
        }
    }
}
