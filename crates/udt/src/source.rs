//! Source of data to send: generated bulk data, or the application's send buffer.

use crate::packet::MessagePart;
use crate::send_buffer::SendBuffer;
use crate::seq::MessageNumber;
use dumbbell_net::Application;
use dumbbell_units::{Rate, Span, Time};

/// Source of data to send.
#[derive(Debug)]
pub(crate) enum Source {
    Bulk(BulkSource),
    Queue(SendBuffer),
}

/// A message and its packets `first..=last`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MessageRange {
    pub(crate) number: MessageNumber,
    pub(crate) first: u64,
    pub(crate) last: u64,
}

impl Source {
    /// Whether packet `next` is available.
    ///
    /// # Errors
    /// The time at which it will be, or `Time::MAX` if that is unknown.
    #[inline]
    pub(crate) fn available(&self, next: u64, now: Time) -> Result<(), Time> {
        match self {
            Source::Bulk(bulk) => bulk.available(next, now),
            Source::Queue(queue) => queue.available(next),
        }
    }

    /// Length, bytes, and message field of a packet.
    #[inline]
    pub(crate) fn describe(&self, packet: u64) -> (u16, MessagePart) {
        match self {
            Source::Bulk(bulk) => bulk.describe(packet),
            Source::Queue(queue) => queue.describe(packet),
        }
    }

    /// The message of a packet, if its time to live has expired.
    pub(crate) fn expired(&self, packet: u64, now: Time) -> Option<MessageRange> {
        match self {
            Source::Bulk(_) => None,
            Source::Queue(queue) => queue.expired(packet, now),
        }
    }

    /// Discards all packets before this one.
    pub(crate) fn release(&mut self, packet: u64) {
        if let Source::Queue(queue) = self {
            queue.release(packet);
        }
    }

    /// Total number of packets, if known.
    pub(crate) fn total_packets(&self) -> Option<u64> {
        match self {
            Source::Bulk(bulk) => Some(bulk.packets),
            Source::Queue(_) => None,
        }
    }
}

/// Generated data of a measurement, in full packets, each a message.
#[derive(Clone, Debug)]
pub struct BulkData {
    /// Bytes to send. `None`: unlimited.
    pub bytes: Option<u64>,
    /// Time at which new data ends.
    pub stop: Option<Time>,
    /// Rates at which the application writes, each with its start relative to the connection's
    /// establishment. Empty: data is always available.
    pub app_rates: Vec<(Span, Rate)>,
}

/// Bulk data, split into packets.
#[derive(Clone, Debug)]
pub(crate) struct BulkSource {
    bytes: Option<u64>,
    packets: u64,
    stop: Time,
    application: Option<Application>,
    started_at: Time,
    payload: u16,
}

impl BulkSource {
    /// Bulk data in packets of `payload` bytes; the application starts to write at `now`.
    pub(crate) fn new(bulk: &BulkData, payload: u16, now: Time) -> BulkSource {
        BulkSource {
            bytes: bulk.bytes,
            packets: bulk.bytes.map_or(u64::MAX, |bytes| bytes.div_ceil(u64::from(payload))),
            stop: bulk.stop.unwrap_or(Time::MAX),
            application: Application::from_rates(&bulk.app_rates, payload),
            started_at: now,
            payload,
        }
    }

    #[inline]
    pub(crate) fn available(&self, next: u64, now: Time) -> Result<(), Time> {
        if next >= self.packets || now >= self.stop {
            return Err(Time::MAX);
        }
        match &self.application {
            None => Ok(()),
            Some(application) => {
                if next < u64::from(application.written(now.since(self.started_at))) {
                    return Ok(());
                }
                Err(self.started_at + application.due(next as u32 + 1))
            }
        }
    }

    #[inline]
    pub(crate) fn describe(&self, packet: u64) -> (u16, MessagePart) {
        let message = MessagePart::new(MessageNumber::nth(packet), true, true, false);
        match self.bytes {
            Some(bytes) if packet + 1 == self.packets => {
                ((bytes - packet * u64::from(self.payload)) as u16, message)
            }
            _ => (self.payload, message),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bulk(bytes: u64, app_rate: Option<Rate>) -> BulkSource {
        let app_rates = app_rate.map(|rate| (Span::ZERO, rate)).into_iter().collect();
        BulkSource::new(&BulkData { bytes: Some(bytes), stop: None, app_rates }, 1456, Time::ZERO)
    }

    #[test]
    fn the_last_packet_carries_the_remaining_bytes() {
        let source = bulk(3000, None);
        let lengths: Vec<u16> = (0..source.packets).map(|n| source.describe(n).0).collect();
        assert_eq!(lengths, [1456, 1456, 88]);
        assert_eq!(source.available(3, Time::ZERO), Err(Time::MAX));
    }

    #[test]
    fn a_packet_is_available_once_the_application_has_written_it() {
        let source = bulk(1_000_000, Some(Rate::from_bytes_per_sec(145_600.0)));
        let due = Time::ZERO + Span::from_millis(10);
        assert_eq!(source.available(0, Time::ZERO), Err(due));
        assert_eq!(source.available(0, due), Ok(()));
    }
}
