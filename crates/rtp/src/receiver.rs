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
