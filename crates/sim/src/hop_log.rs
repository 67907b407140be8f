//! The hop log: when every packet entered and left every link, for animations of a path.
//!
//! Packets carry no number of their own. A packet is found again by its content: equal packets of a
//! sender leave a link in the order in which they entered it, so it does not matter which is which.

use crate::datagram::EcnCodepoint;
use crate::engine::EndpointId;
use crate::observer::Observer;
use crate::pdu::{Pdu, SimPacket};
use dumbbell_net::{DropReason, LinkId, Packet};
use dumbbell_tcp::Flags;
use dumbbell_units::Time;
use std::collections::{HashMap, VecDeque};

/// How a packet's stay on a link ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HopEnd {
    /// It has not ended.
    Open,
    /// At the far end.
    Delivered,
    /// In the queue or before it.
    Dropped(DropReason),
}

/// A packet's stay on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// Index of the link: the scenario's links come first, then delay lines of acknowledgements.
    pub link: LinkId,
    /// Index of the flow in the scenario.
    pub flow: u32,
    /// Whether the flow's sender sent the packet; otherwise its receiver did.
    pub by_sender: bool,
    /// Number of the data packet, or of the next one expected.
    pub number: u32,
    /// Bytes on the wire.
    pub size: u32,
    /// Whether it is a retransmission.
    pub retransmission: bool,
    /// Whether it carried an ECN mark when it left the link.
    pub marked: bool,
    /// When it arrived at the near end.
    pub entered_at: Time,
    /// When it left the far end or was dropped; [`Time::MAX`] if it is still there.
    pub left_at: Time,
    /// How its stay ended.
    pub end: HopEnd,
}

/// The hops of a part of a run, in the order in which they began.
#[derive(Debug, Default)]
pub struct HopLog {
    /// By pair of ports: the flow's index in the scenario.
    flows: Vec<u32>,
    /// How many further hops are recorded.
    room: usize,
    hops: Vec<Hop>,
    /// Hops that have not ended, by sender and content.
    open: HashMap<(u32, Pdu), VecDeque<usize>>,
    /// Time and link of every drop of the run.
    drops: Vec<(Time, LinkId)>,
    records_drops: bool,
}

/// At most this many drops are listed.
const MAX_DROPS: usize = 1 << 20;

impl HopLog {
    /// A log for pairs of ports with the flow of each; records nothing yet.
    pub(crate) fn new(flows: Vec<u32>) -> HopLog {
        HopLog { flows, ..HopLog::default() }
    }

    /// Lists drops from now on.
    pub(crate) fn record_drops(&mut self) {
        self.records_drops = true;
    }

    /// Records up to so many hops that begin from now on.
    pub(crate) fn record(&mut self, max: usize) {
        self.room = max;
        self.hops.reserve(max.min(1 << 16));
    }

    /// Whether no further hop is recorded.
    pub(crate) fn is_full(&self) -> bool {
        self.room == 0
    }

    /// The recorded hops.
    pub fn hops(&self) -> &[Hop] {
        &self.hops
    }

    /// Time and link of the drops so far, a million at most.
    pub fn drops(&self) -> &[(Time, LinkId)] {
        &self.drops
    }

    /// Whether there is anything to do for a packet.
    #[inline]
    fn is_idle(&self) -> bool {
        self.room == 0 && self.open.is_empty()
    }

    #[cold]
    #[inline(never)]
    fn enter(&mut self, now: Time, from: EndpointId, hop: u8, link: LinkId, packet: &Pdu) {
        let key = key(from, packet);
        if hop > 0 {
            self.close(&key, now, HopEnd::Delivered, packet, None);
        }
        if self.room > 0 {
            self.room -= 1;
            self.open.entry(key).or_default().push_back(self.hops.len());
            self.push(now, from, link, packet);
        }
    }

    #[cold]
    #[inline(never)]
    fn deliver(&mut self, now: Time, from: EndpointId, packet: &Pdu) {
        self.close(&key(from, packet), now, HopEnd::Delivered, packet, None);
    }

    #[cold]
    #[inline(never)]
    fn drop(&mut self, now: Time, from: EndpointId, at: LinkId, why: DropReason, packet: &Pdu) {
        let (key, end) = (key(from, packet), HopEnd::Dropped(why));
        if self.close(&key, now, end, packet, Some(at)) {
            return;
        }
        // It never entered this link: it left the one before.
        self.close(&key, now, HopEnd::Delivered, packet, None);
        if self.room > 0 {
            self.room -= 1;
            self.push(now, from, at, packet);
            if let Some(hop) = self.hops.last_mut() {
                (hop.left_at, hop.end) = (now, end);
            }
        }
    }

    fn push(&mut self, now: Time, from: EndpointId, link: LinkId, packet: &Pdu) {
        let (number, retransmission) = match packet {
            Pdu::Tcp(segment) => (segment.number, segment.flags.contains(Flags::RETRANSMISSION)),
            Pdu::Udt(dumbbell_udt::Packet::Data(data)) => (data.seq.get(), false),
            Pdu::Udt(_) => (0, false),
            Pdu::Datagram(datagram) => (datagram.number, false),
        };
        self.hops.push(Hop {
            link,
            flow: self.flows.get(from.pair() as usize).copied().unwrap_or_default(),
            by_sender: !from.is_receiver(),
            number,
            size: packet.size(),
            retransmission,
            marked: false,
            entered_at: now,
            left_at: Time::MAX,
            end: HopEnd::Open,
        });
    }

    /// Ends the oldest open hop of this content, on a certain link or on any.
    fn close(
        &mut self,
        key: &(u32, Pdu),
        now: Time,
        end: HopEnd,
        packet: &Pdu,
        at: Option<LinkId>,
    ) -> bool {
        let Some(open) = self.open.get_mut(key) else { return false };
        let hops = &mut self.hops;
        let found = open.iter().position(|&hop| at.is_none_or(|link| hops[hop].link == link));
        let Some(hop) = found.and_then(|found| open.remove(found)) else { return false };
        if open.is_empty() {
            self.open.remove(key);
        }
        let hop = &mut hops[hop];
        (hop.left_at, hop.end, hop.marked) = (now, end, is_marked(packet));
        true
    }
}

/// A packet's sender and its content, whatever links mark.
fn key(from: EndpointId, packet: &Pdu) -> (u32, Pdu) {
    (from.0, packet.as_marked())
}

fn is_marked(packet: &Pdu) -> bool {
    match packet {
        Pdu::Tcp(segment) => segment.flags.contains(Flags::CE),
        Pdu::Udt(_) => false,
        Pdu::Datagram(datagram) => datagram.ecn == EcnCodepoint::Ce,
    }
}

impl<P: SimPacket> Observer<P> for HopLog {
    #[inline]
    fn on_entered(&mut self, now: Time, from: EndpointId, hop: u8, link: LinkId, packet: &P) {
        if !self.is_idle() {
            self.enter(now, from, hop, link, &packet.pdu());
        }
    }

    #[inline]
    fn on_delivered(&mut self, now: Time, to: EndpointId, packet: &P) {
        if !self.open.is_empty() {
            self.deliver(now, to.peer(), &packet.pdu());
        }
    }

    fn on_dropped(&mut self, now: Time, from: EndpointId, at: LinkId, why: DropReason, packet: &P) {
        if self.records_drops && self.drops.len() < MAX_DROPS {
            self.drops.push((now, at));
        }
        if !self.is_idle() {
            self.drop(now, from, at, why, &packet.pdu());
        }
    }
}
