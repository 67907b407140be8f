//! UDP at the rate of its application: nothing is acknowledged, repeated or held back.

use crate::sample::Sampled;
use crate::sim_endpoint::SimEndpoint;
use crate::tables::{FlowRow, SeriesRow};
use dumbbell_cc::Metric;
use dumbbell_net::{Application, Endpoint};
use dumbbell_tcp::Segment;
use dumbbell_units::{Rate, Span, Time};

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
    /// Both ends of a flow that sends at `rates`, each from a time after `start` on.
    pub(crate) fn ends(rates: &[(Span, Rate)], start: Time, stop: Option<Time>) -> [UdpHost; 2] {
        let application = Application::new(rates, UDP_PAYLOAD);
        let stop = stop.unwrap_or(Time::MAX);
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
