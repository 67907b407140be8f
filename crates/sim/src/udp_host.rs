//! UDP at the rate of its application: nothing is acknowledged, repeated or held back.

use crate::datagram::EcnCodepoint;
use crate::datagram_host::DatagramEndpoint;
use crate::sample::Sampled;
use crate::scenario::FlowSpec;
use crate::sim_endpoint::SimEndpoint;
use crate::tables::{FlowRow, SeriesRow};
use dumbbell_cc::Metric;
use dumbbell_net::{Application, Endpoint};
use dumbbell_tcp::Segment;
use dumbbell_units::Time;

/// Payload bytes of a packet: the usual size of media over RTP.
pub const UDP_PAYLOAD: u16 = 1200;
/// Bytes of the headers of IPv4 and UDP.
pub const UDP_HEADER: u16 = 28;

/// One end of a UDP flow.
pub(crate) enum UdpHost {
    Sender(UdpSender),
    Receiver(UdpReceiver),
}

/// Sends each packet as soon as the application has written it.
pub(crate) struct UdpSender {
    application: Application,
    start: Time,
    /// Nothing is sent from then on.
    stop: Time,
    sent: u32,
}

/// Counts what arrives.
#[derive(Default)]
pub(crate) struct UdpReceiver {
    packets: u64,
    /// The number after the highest one that arrived.
    next: u32,
}

impl UdpHost {
    /// Both ends of a checked flow that starts at this time, jitter included.
    pub(crate) fn ends(flow: &FlowSpec, start: Time) -> [UdpHost; 2] {
        let application = Application::new(&flow.write_rates(), UDP_PAYLOAD);
        let stop = flow.stop_ns.map_or(Time::MAX, Time::from_nanos);
        let sender = UdpSender { application, start, stop, sent: 0 };
        [UdpHost::Sender(sender), UdpHost::Receiver(UdpReceiver::default())]
    }
}

impl UdpReceiver {
    fn bytes(&self) -> u64 {
        self.packets * u64::from(UDP_PAYLOAD)
    }

    /// Packets that did not arrive before a later one.
    fn lost(&self) -> u64 {
        u64::from(self.next).saturating_sub(self.packets)
    }
}

impl Endpoint for UdpHost {
    type Packet = Segment;

    fn handle(&mut self, _now: Time, packet: &Segment) {
        if let UdpHost::Receiver(receiver) = self {
            receiver.packets += 1;
            receiver.next = receiver.next.max(packet.number + 1);
        }
    }

    fn poll(&mut self, now: Time) -> Option<Segment> {
        let UdpHost::Sender(sender) = self else { return None };
        let is_due = now >= sender.start
            && now < sender.stop
            && sender.application.written(now.since(sender.start)) > sender.sent;
        is_due.then(|| {
            let mut packet = Segment::default();
            packet.number = sender.sent;
            packet.timestamp = (now.as_nanos() / 1000) as u32;
            packet.size = UDP_PAYLOAD + UDP_HEADER;
            sender.sent += 1;
            packet
        })
    }

    fn next_timeout(&self) -> Time {
        let UdpHost::Sender(sender) = self else { return Time::MAX };
        let due = sender.start + sender.application.due(sender.sent + 1);
        if due < sender.stop { due } else { Time::MAX }
    }
}

impl SimEndpoint for UdpHost {}

impl Sampled for UdpHost {
    fn sample(&self, row: &mut SeriesRow) {
        match self {
            UdpHost::Sender(sender) => {
                *row = SeriesRow {
                    cwnd: f32::NAN,
                    delivery_rate: f32::NAN,
                    sent: u64::from(sender.sent),
                    ..row.of_several()
                };
            }
            UdpHost::Receiver(receiver) => {
                (row.delivered, row.received) = (receiver.bytes(), receiver.bytes());
                row.lost = receiver.lost();
            }
        }
    }

    fn finish(&self, row: &mut FlowRow) {
        match self {
            UdpHost::Sender(sender) => row.sent = u64::from(sender.sent),
            UdpHost::Receiver(receiver) => {
                (row.delivered, row.received) = (receiver.bytes(), receiver.bytes());
                row.lost = receiver.lost();
            }
        }
    }

    fn inspect(&self, _show: &mut dyn FnMut(Metric)) {}

    fn is_complete(&self) -> bool {
        false
    }
}

/// With real packets. The payload begins with the number of the packet, big-endian; the rest is zero.
impl DatagramEndpoint for UdpHost {
    fn handle(&mut self, now: Time, payload: &[u8], _ecn: EcnCodepoint) {
        let number = payload.first_chunk().map(|bytes| u32::from_be_bytes(*bytes));
        if let Some(number) = number.filter(|&number| number < u32::MAX)
            && payload.len() == usize::from(UDP_PAYLOAD)
        {
            let mut packet = Segment::default();
            packet.number = number;
            Endpoint::handle(self, now, &packet);
        }
    }

    fn poll(&mut self, now: Time, payload: &mut Vec<u8>) -> Option<EcnCodepoint> {
        let packet = Endpoint::poll(self, now)?;
        payload.extend(packet.number.to_be_bytes());
        payload.resize(UDP_PAYLOAD.into(), 0);
        Some(EcnCodepoint::NotEct)
    }

    fn next_timeout(&self) -> Time {
        Endpoint::next_timeout(self)
    }

    fn sample(&self, row: &mut SeriesRow) {
        Sampled::sample(self, row);
    }

    fn finish(&self, row: &mut FlowRow) {
        Sampled::finish(self, row);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dumbbell_units::Span;

    /// From the start at 2 ms on a packet is written every ms until 6 ms, and every 0.5 ms from 8 ms
    /// until the stop at 10 ms.
    fn ends() -> [Box<dyn DatagramEndpoint>; 2] {
        let mut flow = FlowSpec::new("media", "none");
        // 1200 bytes in 1 ms are 9.6 Mbit/s.
        flow.app_rates = vec![(0, 9.6e6), (4_000_000, 0.0), (6_000_000, 19.2e6)];
        flow.stop_ns = Some(10_000_000);
        UdpHost::ends(&flow, at(2_000)).map(|end| Box::new(end) as Box<dyn DatagramEndpoint>)
    }

    fn at(micros: u64) -> Time {
        Time::ZERO + Span::from_micros(micros)
    }

    #[test]
    fn real_packets_have_the_sizes_and_times_of_the_application() {
        let [mut sender, mut receiver] = ends();
        let (mut times, mut payload) = (Vec::new(), Vec::new());
        loop {
            let now = sender.next_timeout();
            if now == Time::MAX {
                break;
            }
            while let Some(ecn) = sender.poll(now, &mut payload) {
                times.push(now);
                assert_eq!(payload.len(), 1200);
                receiver.handle(now, &payload, ecn);
                payload.clear();
            }
        }
        let due = [3_000, 4_000, 5_000, 6_000, 8_500, 9_000, 9_500];
        assert_eq!(times, due.map(at));
        let mut row = FlowRow::default();
        [sender, receiver].iter().for_each(|end| end.finish(&mut row));
        assert_eq!((row.sent, row.received, row.lost), (7, 7 * 1200, 0));
    }

    #[test]
    fn the_receiver_counts_gaps_and_ignores_what_is_not_its_own() {
        let [_, mut receiver] = ends();
        let packet = |number: u32, size: usize| {
            let mut payload = vec![0; size];
            payload[..4].copy_from_slice(&number.to_be_bytes());
            payload
        };
        for number in [0, 1, 4] {
            receiver.handle(at(0), &packet(number, 1200), EcnCodepoint::NotEct);
        }
        for other in [vec![], vec![0; 3], packet(9, 1199), packet(u32::MAX, 1200)] {
            receiver.handle(at(0), &other, EcnCodepoint::NotEct);
        }
        let mut row = FlowRow::default();
        receiver.finish(&mut row);
        assert_eq!((row.received, row.lost), (3600, 2));
        assert_eq!(receiver.poll(at(0), &mut Vec::new()), None);
    }
}
