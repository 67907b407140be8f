//! The receiving side of a multipath connection: one receiver per subflow, and one data stream.
//!
//! A subflow delivers its packets in its own order, as in Linux. A hole in a subflow therefore blocks
//! later packets of the same subflow, even if their data has arrived on another one.

use super::reassembly::{Arrival, Reassembly};
use crate::receive_window::ReceiveWindow;
use crate::{Receiver, ReceiverStats, Segment, Stack};
use dumbbell_net::Endpoint;
use dumbbell_units::Time;
use std::collections::VecDeque;
use std::sync::Arc;

/// A subflow's receiver and the packets that it has not delivered.
struct SubflowReceiver {
    receiver: Receiver,
    /// Packets delivered to the connection.
    delivered: u32,
    /// DSNs of the packets from `delivered` on; `MISSING` for holes.
    held_dsns: VecDeque<u32>,
}

const MISSING: u32 = u32::MAX;

impl SubflowReceiver {
    /// Receives a packet, and delivers to the connection what is now in the subflow's order.
    #[inline]
    fn receive(&mut self, segment: &Segment, mut deliver: impl FnMut(u32)) {
        let next = self.receiver.stats().packets as u32;
        if self.held_dsns.is_empty()
            && segment.number == self.delivered
            && next == self.delivered + 1
        {
            self.delivered = next;
            deliver(segment.dsn());
            return;
        }
        if let Some(index) = segment.number.checked_sub(self.delivered) {
            let index = index as usize;
            if self.held_dsns.len() <= index {
                self.held_dsns.resize(index + 1, MISSING);
            }
            self.held_dsns[index] = segment.dsn();
        }
        while self.delivered < next
            && let Some(number) = self.held_dsns.pop_front()
        {
            self.delivered += 1;
            deliver(number);
        }
    }
}

/// The receiving side of a multipath connection.
pub struct MultipathReceiver {
    subflows: Vec<SubflowReceiver>,
    data: Reassembly,
    /// The receive window of the connection's data, which all subflows advertise (`mptcp_space`).
    window: ReceiveWindow,
    stack: Arc<Stack>,
    /// The last packet, if it is shorter than others: its DSN and payload.
    last_segment: Option<(u32, u16)>,
    /// Subflows that may have acknowledgements to send, as bits.
    pending_mask: u32,
    timers_checked: bool,
    port: u8,
}

impl MultipathReceiver {
    /// A receiver with `subflows` subflows, each waiting for a SYN. `stack` is [`Stack::of_subflow`]; all
    /// subflows share its receive window.
    pub fn new(stack: &Arc<Stack>, subflows: u8) -> MultipathReceiver {
        let subflow = || SubflowReceiver {
            receiver: Receiver::new(Arc::clone(stack)),
            delivered: 0,
            held_dsns: VecDeque::new(),
        };
        MultipathReceiver {
            subflows: (0..subflows).map(|_| subflow()).collect(),
            data: Reassembly::default(),
            window: ReceiveWindow::of_connection(stack),
            stack: Arc::clone(stack),
            last_segment: None,
            pending_mask: 0,
            timers_checked: false,
            port: 0,
        }
    }

    /// Counters of the connection: data that the application could read.
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
        let subflow = &mut self.subflows[usize::from(port)];
        subflow.receiver.handle(now, segment);
        self.pending_mask |= 1 << port;
        if segment.is_control() {
            return;
        }
        let payload = segment.size - self.stack.header;
        if payload != self.stack.mss {
            self.last_segment = Some((segment.dsn(), payload));
        }
        let (data, window, stack) = (&mut self.data, &mut self.window, &self.stack);
        if !stack.autotuning {
            subflow.receive(segment, |number| _ = data.arrive(number));
            return;
        }
        let mut grown = None;
        subflow.receive(segment, |number| match data.arrive(number) {
            Arrival::Duplicate => {}
            Arrival::OutOfOrder => window.queue(),
            Arrival::InOrder { packets } => {
                grown = grown.max(window.on_read(now, data.next(), packets, stack));
            }
        });
        if let Some(copied) = grown {
            self.subflows.iter_mut().for_each(|it| it.receiver.follow_window(copied));
        }
        let receivers = self.subflows.iter().map(|subflow| &subflow.receiver);
        let rtt = receivers.clone().map(|receiver| receiver.window().rtt_us()).max().unwrap_or(0);
        let is_one_unused = receivers.clone().any(Receiver::is_unused);
        self.window.follow_subflows(now, rtt, is_one_unused);
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
            for (subflow, bit) in self.subflows.iter().zip(0..) {
                self.pending_mask |= u32::from(subflow.receiver.next_timeout() <= now) << bit;
            }
        }
        while self.pending_mask != 0 {
            let port = self.pending_mask.trailing_zeros();
            let receiver = &mut self.subflows[port as usize].receiver;
            if let Some(mut reply) = receiver.poll(now) {
                self.port = port as u8;
                let next = self.data.next();
                let window = self.window.advertise_on(receiver.window(), next, &self.stack);
                reply.set_data_ack(next, window, &self.stack);
                return Some(reply);
            }
            self.pending_mask &= self.pending_mask - 1;
        }
        self.timers_checked = false;
        None
    }

    fn next_timeout(&self) -> Time {
        let timeouts = self.subflows.iter().map(|subflow| subflow.receiver.next_timeout());
        timeouts.min().unwrap_or(Time::MAX)
    }
}
