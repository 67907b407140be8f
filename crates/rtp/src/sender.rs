//! The sender: encodes frames at the target rate, paces their packets, and reads reports.

use crate::control::{Feedback, MediaControl, PacketResult, RateLimits};
use crate::feedback::Report;
use crate::frames::Frames;
use crate::history::History;
use crate::options::{MediaEcn, RtpOptions};
use crate::packet::{RTP_HEADER, RtpPacket};
use crate::source::VideoSource;
use dumbbell_cc::Metric;
use dumbbell_sim::{DatagramEndpoint, EcnCodepoint, FlowRow, FrameRow, SeriesRow};
use dumbbell_units::{Rate, Span, Time};
use std::collections::VecDeque;

/// A packet that waits to be sent.
#[derive(Clone, Copy, Debug)]
struct Queued {
    captured_at: Time,
    frame: u32,
    place: u16,
    packets: u16,
    size: u16,
}

/// After so long without a packet one leaves whatever the window says: without it nothing would be
/// reported, and the window would stay full, once a whole window is lost. The drafts have no rule.
const KEEP_ALIVE: Span = Span::from_millis(500);

/// When media is captured, and how much of it at most.
pub(crate) struct Load {
    pub(crate) start: Time,
    pub(crate) stop: Time,
    /// Maximum rates of the media, each from a time after the start on; 0 is a pause.
    pub(crate) max_rates: Vec<(Span, Rate)>,
}

impl Load {
    fn max_rate(&self, now: Time) -> Rate {
        let after = now.since(self.start);
        let step = self.max_rates.iter().rev().find(|step| step.0 <= after);
        step.map_or(Rate::ZERO, |step| step.1)
    }
}

/// The end that sends media.
pub(crate) struct MediaSender {
    control: Box<dyn MediaControl>,
    source: VideoSource,
    frames: Frames,
    load: Load,
    min_rate: Rate,
    payload: u16,
    ecn: MediaEcn,
    queue: VecDeque<Queued>,
    history: History,
    /// When pacing lets the next packet leave.
    paced_at: Time,
    sent_at: Time,
    results: Vec<PacketResult>,
    sent: u64,
}

impl MediaSender {
    pub(crate) fn new(
        control: Box<dyn MediaControl>,
        options: &RtpOptions,
        load: Load,
        frames: Frames,
        seed: u64,
    ) -> MediaSender {
        MediaSender {
            control,
            source: VideoSource::new(options, load.start, seed),
            frames,
            paced_at: load.start,
            sent_at: load.start,
            load,
            min_rate: Rate::from_bits_per_sec(options.min_rate_bps as f64),
            payload: options.payload,
            ecn: options.ecn,
            queue: VecDeque::new(),
            history: History::default(),
            results: Vec::new(),
            sent: 0,
        }
    }

    /// Captures the frames that are due.
    fn capture(&mut self, now: Time) {
        while self.source.next_at() <= now && now < self.load.stop {
            let max = self.load.max_rate(now);
            if max == Rate::ZERO {
                self.source.skip();
                continue;
            }
            self.control.set_limits(RateLimits { min: self.min_rate.min(max), max });
            let bytes = self.source.capture(self.control.target_rate());
            let waited = self.queue.front().map_or(Span::ZERO, |one| now.since(one.captured_at));
            self.control.on_frame(bytes, waited);
            self.packetise(now, bytes);
        }
    }

    /// Splits a frame into packets of about the same size, whose headers are part of `bytes`.
    fn packetise(&mut self, now: Time, bytes: u32) {
        let packets = bytes.div_ceil(u32::from(self.payload)).clamp(1, u32::from(u16::MAX));
        let size =
            bytes.div_ceil(packets).clamp(u32::from(RTP_HEADER) + 1, u32::from(self.payload));
        let (packets, size) = (packets as u16, size as u16);
        let media = u32::from(packets) * u32::from(size - RTP_HEADER);
        let frame = self.frames.captured(now, media);
        let queued = |place| Queued { captured_at: now, frame, place, packets, size };
        self.queue.extend((0..packets).map(queued));
    }

    /// When pacing and the window let a packet of this size leave, unless a report comes first. One
    /// packet may always be in flight.
    fn due(&self, size: u16) -> Time {
        let in_flight = self.history.bytes_in_flight();
        let max = self.control.max_in_flight();
        match in_flight == 0 || max.is_none_or(|max| in_flight + u64::from(size) <= max) {
            true => self.paced_at,
            false => self.paced_at.max(self.sent_at + KEEP_ALIVE),
        }
    }

    fn send(&mut self, now: Time, packet: Queued, payload: &mut Vec<u8>) {
        let rtp = RtpPacket {
            number: self.history.next() as u16,
            timestamp: RtpPacket::timestamp(packet.captured_at),
            marker: packet.place + 1 == packet.packets,
            frame: packet.frame,
            place: packet.place,
            packets: packet.packets,
        };
        rtp.write(usize::from(packet.size), payload);
        self.history.on_sent(now, u32::from(packet.size));
        self.control.on_sent(now, self.history.bytes_in_flight());
        self.sent += 1;
        self.sent_at = now;
        let takes = self.control.pacing_rate().time_for(f64::from(packet.size));
        self.paced_at = self.paced_at.max(now) + takes;
    }

    /// Bytes in the unit of windows, full packets.
    fn packets(&self, bytes: f64) -> f64 {
        bytes / f64::from(self.payload)
    }
}

impl DatagramEndpoint for MediaSender {
    fn handle(&mut self, now: Time, payload: &[u8], _ecn: EcnCodepoint) {
        let Ok(report) = Report::read(payload, self.history.last_acked(), now) else { return };
        let mut results = std::mem::take(&mut self.results);
        results.clear();
        self.history.on_report(now, &report, &mut results);
        self.control.on_feedback(&Feedback {
            now,
            packets: &results,
            bytes_newly_acked: self.history.bytes_newly_acked(),
            bytes_in_flight: self.history.bytes_in_flight(),
            srtt: self.history.srtt(),
        });
        self.results = results;
    }

    fn poll(&mut self, now: Time, payload: &mut Vec<u8>) -> Option<EcnCodepoint> {
        self.capture(now);
        let packet = *self.queue.front()?;
        if now < self.due(packet.size) {
            return None;
        }
        self.queue.pop_front();
        self.send(now, packet, payload);
        Some(self.ecn.codepoint())
    }

    fn next_timeout(&self) -> Time {
        let capture = self.source.next_at();
        let capture = if capture < self.load.stop { capture } else { Time::MAX };
        self.queue.front().map_or(capture, |packet| capture.min(self.due(packet.size)))
    }

    fn sample(&self, row: &mut SeriesRow) {
        let secs = |span: Option<Span>| span.map_or(f32::NAN, |span| span.as_secs_f64() as f32);
        *row = SeriesRow {
            cwnd: self.control.window().map_or(f32::NAN, |bytes| self.packets(bytes) as f32),
            ssthresh: f32::INFINITY,
            srtt: secs(self.history.srtt()),
            rtt: secs(self.history.latest_rtt),
            min_rtt: secs(self.history.min_rtt),
            pacing_rate: self.control.pacing_rate().bits_per_sec() as f32,
            delivery_rate: f32::NAN,
            in_flight: self.history.packets_in_flight() as u32,
            sent: self.sent,
            lost: self.history.lost,
            delivered: self.history.delivered,
            ..*row
        };
    }

    fn finish(&self, row: &mut FlowRow) {
        *row = FlowRow {
            sent: self.sent,
            lost: self.history.lost,
            delivered: self.history.delivered,
            ..row.with_round_trips(self.history.rtt_sum)
        };
    }

    fn inspect(&self, show: &mut dyn FnMut(Metric)) {
        let waiting: u64 = self.queue.iter().map(|packet| u64::from(packet.size)).sum();
        let target = self.control.target_rate().bytes_per_sec();
        show(Metric { name: "target_bitrate", value: target });
        show(Metric { name: "rtp_queue", value: self.packets(waiting as f64) });
        self.control.inspect(show);
    }

    fn frames(&self, push: &mut dyn FnMut(FrameRow)) {
        self.frames.rows(push);
    }
}
