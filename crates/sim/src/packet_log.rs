//! The packet log: every packet of the flows that asked for it, as it is sent, arrives or is
//! dropped.

use crate::engine::{EndpointId, Observer};
use crate::pdu::{Pdu, SimPacket};
use dumbbell_net::{DropReason, LinkId};
use dumbbell_units::Time;

/// What happened to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketEvent {
    /// An endpoint sent it.
    Sent,
    /// It reached the other endpoint.
    Received,
    /// It did not get onto this link, or was dropped while it waited for it.
    Dropped(LinkId, DropReason),
}

/// One line of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketRecord {
    /// When it happened.
    pub at: Time,
    /// What happened.
    pub event: PacketEvent,
    /// The flow, by its place in the scenario.
    pub flow: u32,
    /// Whether the flow's sender sent the packet; otherwise its receiver did.
    pub by_sender: bool,
    /// The packet.
    pub packet: Pdu,
}

/// The packets of the flows that are logged, in the order of events; one that was dropped while it
/// waited comes when that was noticed.
#[derive(Clone, Debug, Default)]
pub struct PacketLog {
    /// By pair of endpoints: the flow's place in the scenario, if it is logged. Empty if none is.
    flows: Vec<Option<u32>>,
    records: Vec<PacketRecord>,
}

impl PacketLog {
    /// A log of those pairs of endpoints that have a flow here.
    pub(crate) fn new(flows: Vec<Option<u32>>) -> PacketLog {
        let any = flows.iter().any(Option::is_some);
        PacketLog { flows: if any { flows } else { Vec::new() }, records: Vec::new() }
    }

    /// All that was recorded.
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
        if let Some(&Some(flow)) = self.flows.get(sender.pair() as usize) {
            let by_sender = sender.0.is_multiple_of(2);
            self.records.push(PacketRecord { at, event, flow, by_sender, packet: packet.pdu() });
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
