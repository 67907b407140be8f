//! The packet log: all packets of logged flows as they are sent, received or dropped.

use crate::engine::EndpointId;
use crate::observer::Observer;
use crate::pdu::{Pdu, SimPacket};
use dumbbell_net::{DropReason, LinkId};
use dumbbell_units::Time;

/// An event of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketEvent {
    /// Sent by an endpoint.
    Sent,
    /// Received by the other endpoint.
    Received,
    /// Dropped by this link, on arrival or from its queue.
    Dropped(LinkId, DropReason),
}

/// A record of the packet log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketRecord {
    /// Time of the event.
    pub at: Time,
    /// The event.
    pub event: PacketEvent,
    /// Index of the flow in the scenario.
    pub flow: u32,
    /// The subflow of a connection over several paths, from 0 on.
    pub subflow: u8,
    /// Whether the flow's sender sent the packet; otherwise its receiver did.
    pub by_sender: bool,
    /// The packet.
    pub packet: Pdu,
}

/// The packets of logged flows in the order of events. A drop from a queue is recorded when the
/// link reports it.
#[derive(Clone, Debug, Default)]
pub struct PacketLog {
    /// By pair of ports: the flow's index in the scenario and the subflow, if it is logged. Empty if none is.
    flows: Vec<Option<(u32, u8)>>,
    records: Vec<PacketRecord>,
}

impl PacketLog {
    /// A log for pairs of ports: the flow and subflow of each pair that is logged.
    pub(crate) fn new(flows: Vec<Option<(u32, u8)>>) -> PacketLog {
        let any = flows.iter().any(Option::is_some);
        PacketLog { flows: if any { flows } else { Vec::new() }, records: Vec::new() }
    }

    /// All records.
    pub fn records(&self) -> &[PacketRecord] {
        &self.records
    }

    #[inline]
    fn record(
        &mut self,
        at: Time,
        event: PacketEvent,
        sender: EndpointId,
        packet: &impl SimPacket,
    ) {
        if let Some(&Some((flow, subflow))) = self.flows.get(sender.pair() as usize) {
            let by_sender = sender.0.is_multiple_of(2);
            self.records.push(PacketRecord {
                at,
                event,
                flow,
                subflow,
                by_sender,
                packet: packet.pdu(),
            });
        }
    }
}

impl<P: SimPacket> Observer<P> for PacketLog {
    #[inline]
    fn on_sent(&mut self, now: Time, from: EndpointId, packet: &P) {
        self.record(now, PacketEvent::Sent, from, packet);
    }

    #[inline]
    fn on_delivered(&mut self, now: Time, to: EndpointId, packet: &P) {
        self.record(now, PacketEvent::Received, to.peer(), packet);
    }

    #[inline]
    fn on_dropped(&mut self, now: Time, from: EndpointId, at: LinkId, why: DropReason, packet: &P) {
        self.record(now, PacketEvent::Dropped(at, why), from, packet);
    }
}
