//! The receiving side of a multipath connection: a receiver for each subflow, and one data stream.
//!
//! A subflow hands its packets on in its own order (as Linux does), so a hole in a subflow holds
//! back what came after it on the same path, even if its data has come by another path since.

use super::reassembly::Reassembly;
use crate::{Receiver, ReceiverStats, Segment, Stack};
use dumbbell_net::Endpoint;
use dumbbell_units::Time;
use std::collections::VecDeque;
use std::sync::Arc;

/// A receiver, and what it holds back.
struct SubflowReceiver {
    receiver: Receiver,
    /// Packets that the subflow has handed on.
    delivered: u32,
    /// Data numbers of the packets from `passed` on, or `MISSING`.
    held_dsns: VecDeque<u32>,
}

const MISSING: u32 = u32::MAX;

impl SubflowReceiver {
    /// Takes a packet in, and hands on what is now in the subflow's order.
    #[inline]
    fn receive(&mut self, segment: &Segment, data: &mut Reassembly) {
        let next = self.receiver.stats().packets as u32;
        if self.held_dsns.is_empty()
            && segment.number == self.delivered
            && next == self.delivered + 1
        {
            self.delivered = next;
            data.arrive(segment.dsn());
            return;
        }
        if let Some(place) = segment.number.checked_sub(self.delivered) {
            let place = place as usize;
            if self.held_dsns.len() <= place {
                self.held_dsns.resize(place + 1, MISSING);
            }
            self.held_dsns[place] = segment.dsn();
        }
        while self.delivered < next
            && let Some(number) = self.held_dsns.pop_front()
        {
            self.delivered += 1;
            data.arrive(number);
        }
    }
}

/// The receiving side of a multipath connection.
pub struct MultipathReceiver {
    subflows: Vec<SubflowReceiver>,
    data: Reassembly,
    stack: Arc<Stack>,
    /// The last packet, if it is shorter than others: its number and payload.
    last_segment: Option<(u32, u16)>,
    /// Subflows that may have something to send, by bit.
    pending_mask: u32,
    timers_checked: bool,
    port: u8,
}

impl MultipathReceiver {
    /// A receiver with so many subflows, each of which waits for a SYN. `stack` is the subflows'
    /// ([`Stack::of_subflow`]); its receive window is shared by all of them.
    pub fn new(stack: &Arc<Stack>, subflows: u8) -> MultipathReceiver {
        let branch = || SubflowReceiver {
            receiver: Receiver::new(Arc::clone(stack)),
            delivered: 0,
            held_dsns: VecDeque::new(),
        };
        MultipathReceiver {
            subflows: (0..subflows).map(|_| branch()).collect(),
            data: Reassembly::default(),
            stack: Arc::clone(stack),
            last_segment: None,
            pending_mask: 0,
            timers_checked: false,
            port: 0,
        }
    }

    /// Counters of the connection: what the application could read.
    pub fn stats(&self) -> ReceiverStats {
        let packets = self.data.next();
        let missing = self.last_segment.filter(|&(number, _)| number < packets);
        let missing = missing.map_or(0, |(_, payload)| u64::from(self.stack.mss - payload));
        let bytes = u64::from(packets) * u64::from(self.stack.mss) - missing;
        ReceiverStats { bytes, packets: u64::from(packets) }
    }

    #[cfg(test)]
    pub(super) fn stack(&self) -> &Stack {
        &self.stack
    }

    /// Counters of a subflow.
    pub fn subflow_stats(&self, subflow: u8) -> ReceiverStats {
        self.subflows[usize::from(subflow)].receiver.stats()
    }
}

impl MultipathReceiver {
    /// The number of ports, one per subflow.
    pub fn ports(&self) -> u8 {
        self.subflows.len() as u8
    }

    /// Processes a segment that arrived at `now` on a subflow's port.
    pub fn handle_on_port(&mut self, now: Time, port: u8, segment: &Segment) {
        let branch = &mut self.subflows[usize::from(port)];
        branch.receiver.handle(now, segment);
        self.pending_mask |= 1 << port;
        if segment.is_control() {
            return;
        }
        let payload = segment.size - self.stack.header;
        if payload != self.stack.mss {
            self.last_segment = Some((segment.dsn(), payload));
        }
        branch.receive(segment, &mut self.data);
    }

    /// The port of the segment that [`poll`](Endpoint::poll) returned last.
    pub fn outgoing_port(&self) -> u8 {
        self.port
    }
}

impl Endpoint for MultipathReceiver {
    type Packet = Segment;

    fn handle(&mut self, now: Time, segment: &Segment) {
        self.handle_on_port(now, 0, segment);
    }

    fn poll(&mut self, now: Time) -> Option<Segment> {
        if !std::mem::replace(&mut self.timers_checked, true) {
            for (branch, bit) in self.subflows.iter().zip(0..) {
                self.pending_mask |= u32::from(branch.receiver.next_timeout() <= now) << bit;
            }
        }
        while self.pending_mask != 0 {
            let port = self.pending_mask.trailing_zeros();
            if let Some(mut reply) = self.subflows[port as usize].receiver.poll(now) {
                self.port = port as u8;
                reply.set_data_ack(self.data.next(), self.stack.receive_window, &self.stack);
                return Some(reply);
            }
            self.pending_mask &= self.pending_mask - 1;
        }
        self.timers_checked = false;
        None
    }

    fn next_timeout(&self) -> Time {
        let timeouts = self.subflows.iter().map(|branch| branch.receiver.next_timeout());
        timeouts.min().unwrap_or(Time::MAX)
    }
}
