//! RTCP congestion control feedback (RFC 8888): which packets arrived, when, and with which mark.

use crate::packet::{SSRC, extended};
use dumbbell_sim::EcnCodepoint;
use dumbbell_units::{Span, Time};

/// Version 2 and the feedback message type 11, CCFB (RFC 8888, section 3.1).
const FIRST: u8 = 0x80 | 11;
/// RTPFB (RFC 4585, section 6.1).
const PACKET_TYPE: u8 = 205;
/// Bytes before the blocks: RTCP's header with the SSRC of the receiver.
const HEADER: usize = 8;
/// The R bit: the packet was received.
const RECEIVED: u16 = 0x8000;
/// The arrival time offset of a packet that arrived 8189/1024 s or more before the report.
const ATO_MAX: u64 = 0x1ffe;
/// Units of the arrival time offset and of the report timestamp in a second.
const ATO: u128 = 1024;
const RTS: u128 = 65_536;
const SECOND: u128 = 1_000_000_000;

/// How a packet arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When, rounded to 1/1024 s by a report.
    pub at: Time,
    /// Its ECN field.
    pub ecn: EcnCodepoint,
}

/// A report on consecutive packets of one source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Number of the first packet (`begin_seq`), modulo 2^16 in the message.
    pub begin: u64,
    /// For each packet, how it arrived, if it did.
    pub arrivals: Vec<Option<Arrival>>,
    /// When the report was sent.
    pub sent_at: Time,
}

/// Bytes that are no report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportError;

impl Report {
    /// Appends the message to `bytes`.
    pub fn write(&self, bytes: &mut Vec<u8>) {
        let start = bytes.len();
        bytes.extend([FIRST, PACKET_TYPE, 0, 0]);
        bytes.extend(SSRC.to_be_bytes()); // of the receiver, which sends no media
        bytes.extend(SSRC.to_be_bytes());
        bytes.extend((self.begin as u16).to_be_bytes());
        bytes.extend((self.arrivals.len() as u16).to_be_bytes());
        for arrival in &self.arrivals {
            let block = arrival.map_or(0, |arrival| {
                let before = self.sent_at.since(arrival.at).as_nanos();
                let offset = (u128::from(before) * ATO / SECOND) as u64;
                RECEIVED | u16::from(arrival.ecn.bits()) << 13 | offset.min(ATO_MAX) as u16
            });
            bytes.extend(block.to_be_bytes());
        }
        if self.arrivals.len() % 2 == 1 {
            bytes.extend([0, 0]);
        }
        let rts = u128::from(self.sent_at.as_nanos()) * RTS / SECOND;
        bytes.extend((rts as u32).to_be_bytes());
        let words = ((bytes.len() - start) / 4 - 1) as u16;
        bytes[start + 2..start + 4].copy_from_slice(&words.to_be_bytes());
    }

    /// Reads a message. `last` is a number near that of its first packet, and `now` a time after
    /// that of the report, by less than 18 hours.
    ///
    /// # Errors
    /// If the bytes are no report.
    pub fn read(bytes: &[u8], last: u64, now: Time) -> Result<Report, ReportError> {
        let half = |at: usize| {
            let two: Option<[u8; 2]> = bytes.get(at..at + 2).and_then(|two| two.try_into().ok());
            two.map(u16::from_be_bytes).ok_or(ReportError)
        };
        let is_report = half(0)? == u16::from_be_bytes([FIRST, PACKET_TYPE])
            && (usize::from(half(2)?) + 1) * 4 == bytes.len();
        let count = usize::from(half(HEADER + 6)?);
        if !is_report || HEADER + 8 + (count + count % 2) * 2 + 4 != bytes.len() {
            return Err(ReportError);
        }
        let tail = bytes.len() - 4;
        let rts = u32::from(half(tail)?) << 16 | u32::from(half(tail + 2)?);
        let sent_at = unwrapped(rts, now);
        let arrival = |at: usize| -> Result<Option<Arrival>, ReportError> {
            let block = half(HEADER + 8 + 2 * at)?;
            let before = u128::from(block & 0x1fff) * SECOND / ATO;
            let at = Time::ZERO
                + sent_at.since(Time::ZERO).saturating_sub(Span::from_nanos(before as u64));
            let ecn = EcnCodepoint::from_bits((block >> 13) as u8);
            Ok((block & RECEIVED != 0).then_some(Arrival { at, ecn }))
        };
        let arrivals = (0..count).map(arrival).collect::<Result<_, _>>()?;
        Ok(Report { begin: extended(half(HEADER + 4)?, last), arrivals, sent_at })
    }
}

/// The latest time until `now` whose report timestamp is `rts`.
fn unwrapped(rts: u32, now: Time) -> Time {
    let units = u128::from(now.as_nanos()) * RTS / SECOND;
    let behind = (units as u32).wrapping_sub(rts);
    let units = units.saturating_sub(u128::from(behind));
    Time::from_nanos((units * SECOND).div_ceil(RTS) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    #[test]
    fn a_report_has_the_layout_of_rfc_8888() {
        let arrival = |millis, ecn| Some(Arrival { at: at(millis), ecn });
        let arrivals =
            vec![arrival(1500, EcnCodepoint::Ect1), None, arrival(2000, EcnCodepoint::Ce)];
        let report = Report { begin: 65_535, arrivals, sent_at: at(2500) };
        let mut bytes = Vec::new();
        report.write(&mut bytes);
        // Figure 1: V=2, FMT=11; PT=205; length 6 words; SSRCs; begin_seq and num_reports.
        assert_eq!(bytes[..4], [0x8b, 205, 0, 6]);
        assert_eq!(bytes[12..16], [0xff, 0xff, 0, 3]);
        // R, ECN and the offset: 1 s is 1024 units; not received; 0.5 s with a mark; padding.
        assert_eq!(bytes[16..24], [0xa4, 0x00, 0, 0, 0xe2, 0x00, 0, 0]);
        // The report timestamp: 2.5 s in units of 1/65536 s.
        assert_eq!(bytes[24..], [0, 2, 0x80, 0]);
        assert_eq!(Report::read(&bytes, 65_530, at(2600)), Ok(report));
        assert_eq!(Report::read(&bytes[..27], 0, at(2600)), Err(ReportError));
    }

    #[test]
    fn report_timestamps_are_unwrapped_after_18_hours() {
        let sent_at = at(70_000_000);
        let mut bytes = Vec::new();
        Report { begin: 1, arrivals: Vec::new(), sent_at }.write(&mut bytes);
        let read = Report::read(&bytes, 0, at(70_000_100)).expect("a report");
        assert_eq!(read.sent_at, sent_at);
    }
}
