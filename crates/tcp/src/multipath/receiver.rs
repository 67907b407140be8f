//! The receiving side of a multipath connection: one receiver per subflow, and one data stream.
//!
//! A subflow delivers its packets in its own order, as in Linux. A hole in a subflow therefore blocks
//! later packets of the same subflow, even if their data has arrived on another one.

use super::connection_window::ConnectionWindow;
use super::reassembly::{Arrival, Reassembly};
use crate::{Flags, Receiver, ReceiverStats, Scheduler, Segment, Stack};
use dumbbell_net::Endpoint;
use dumbbell_units::Time;
use std::collections::VecDeque;
use std::sync::Arc;

/// A subflow's receiver and the packets that it has not delivered.
struct SubflowReceiver {
    receiver: Receiver,
    /// Packets delivered to the connection, and their bytes.
    delivered: u32,
    bytes: u64,
    /// DSNs and payloads of the packets from `delivered` on; [`MISSING`] for holes.
    held: VecDeque<(u64, u16)>,
    /// A packet that is not acknowledged yet ended a write (`ICSK_ACK_PUSHED`).
    is_pushed: bool,
    /// Data on the way to the application if an acknowledgement is sent now, bytes of the window.
    unread: u64,
    /// An acknowledgement that is sent now does not wait until this is read.
    is_at_once: bool,
    /// The window that it advertised last, and the bytes delivered then (`rcv_wnd`, `rcv_wup`).
    rcv_wnd: u64,
    rcv_wup: u64,
}

const MISSING: (u64, u16) = (u64::MAX, 0);

impl SubflowReceiver {
    /// Receives a packet, and delivers to the connection what is now in the subflow's order.
    #[inline]
    fn receive(&mut self, segment: &Segment, data: (u64, u16), mut deliver: impl FnMut(u64, u16)) {
        let next = self.receiver.stats().packets as u32;
        if self.held.is_empty() && segment.number == self.delivered && next == self.delivered + 1 {
            self.delivered = next;
            self.bytes += u64::from(data.1);
            deliver(data.0, data.1);
            return;
        }
        if let Some(index) = segment.number.checked_sub(self.delivered) {
            let index = index as usize;
            if self.held.len() <= index {
                self.held.resize(index + 1, MISSING);
            }
            self.held[index] = data;
        }
        while self.delivered < next
            && let Some((dsn, payload)) = self.held.pop_front()
        {
            self.delivered += 1;
            self.bytes += u64::from(payload);
            deliver(dsn, payload);
        }
    }

    /// The acknowledgement that is due, if one is, and the connection's window beyond `next` in it. If it is
    /// due because of two packets that would narrow the window, they are read first: as `sk_rcvlowat` of a
    /// subflow is 0, only the window decides in `__tcp_ack_snd_check`; then `mptcp_cleanup_rbuf` does.
    #[inline]
    fn poll(
        &mut self,
        now: Time,
        connection: &mut ConnectionWindow,
        next: u64,
    ) -> Option<(Segment, u64)> {
        let mut unread = std::mem::take(&mut self.unread);
        let reply = self.receiver.poll(now)?;
        self.is_pushed = false;
        let own = self.receiver.window();
        let mut selected = connection.select(own, unread, self.rcv_wnd);
        if unread > 0 && !self.is_at_once && selected < self.rcv_wnd {
            unread = 0;
            selected = connection.select(own, unread, self.rcv_wnd);
        }
        if connection.is_half_full(unread) {
            self.receiver.end_quick_acks();
        }
        let current = (self.rcv_wup + self.rcv_wnd).saturating_sub(self.bytes);
        self.rcv_wnd = connection.advertise(selected, current, next);
        self.rcv_wup = self.bytes;
        Some((reply, self.rcv_wnd.min(connection.max_window(reply.flags))))
    }
}

/// The receiving side of a multipath connection.
pub struct MultipathReceiver {
    subflows: Vec<SubflowReceiver>,
    data: Reassembly,
    window: ConnectionWindow,
    stack: Arc<Stack>,
    data_ack_len: u16,
    /// Subflows that may have acknowledgements to send, as bits.
    pending_mask: u32,
    timers_checked: bool,
    port: u8,
}

impl MultipathReceiver {
    /// A receiver with `subflows` subflows, each waiting for a SYN. `stack` is [`Stack::of_subflow`]; all
    /// subflows share its receive window. `scheduler` is the sender's.
    pub fn new(stack: &Arc<Stack>, scheduler: Scheduler, subflows: u8) -> MultipathReceiver {
        let of_subflows = Arc::new(Stack { push: false, ..Stack::clone(stack) });
        let subflow = || SubflowReceiver {
            receiver: Receiver::new(Arc::clone(&of_subflows)),
            delivered: 0,
            bytes: 0,
            held: VecDeque::new(),
            is_pushed: false,
            unread: 0,
            is_at_once: false,
            rcv_wnd: 0,
            rcv_wup: 0,
        };
        MultipathReceiver {
            subflows: (0..subflows).map(|_| subflow()).collect(),
            data: Reassembly::default(),
            window: ConnectionWindow::new(stack),
            stack: Arc::clone(stack),
            data_ack_len: scheduler.data_ack_len(),
            pending_mask: 0,
            timers_checked: false,
            port: 0,
        }
    }

    /// Bytes that the application could read.
    pub fn received_bytes(&self) -> u64 {
        self.data.next()
    }

    #[cfg(test)]
    pub(super) fn stack(&self) -> &Stack {
        &self.stack
    }

    /// Counters of a subflow.
    pub fn subflow_stats(&self, subflow: u8) -> ReceiverStats {
        let subflow = &self.subflows[usize::from(subflow)];
        ReceiverStats { bytes: subflow.bytes, ..subflow.receiver.stats() }
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
        let was_at_once = subflow.receiver.acknowledges_at_once();
        subflow.receiver.handle(now, segment);
        subflow.is_at_once = was_at_once
            || subflow.receiver.acknowledges_at_once()
            || subflow.receiver.unacked() < 2;
        self.pending_mask |= 1 << port;
        if segment.is_control() {
            return;
        }
        let payload = segment.size - self.stack.header;
        let (data, window) = (&mut self.data, &mut self.window);
        window.on_arrival(window.taken_by(payload));
        let is_pushed = segment.flags.contains(Flags::PSH);
        subflow.is_pushed |= is_pushed && subflow.receiver.stats().packets > segment.number.into();
        let mut read = None;
        subflow.receive(segment, (segment.dsn(), payload), |dsn, payload| {
            let taken = window.taken_by(payload);
            match data.arrive(dsn, payload, taken) {
                Arrival::Duplicate => {}
                Arrival::OutOfOrder => window.queue(taken),
                Arrival::InOrder(freed) => {
                    window.unqueue(freed);
                    read = Some(read.unwrap_or(0) + taken + freed);
                }
            }
        });
        subflow.unread = read.unwrap_or(0);
        if read.is_some() {
            if self.data.is_in_order() && self.stack.push {
                self.acknowledge_writes();
            }
            let (next, subflows) = (self.data.next(), &self.subflows);
            let of_subflows = || {
                let rtts = subflows.iter().map(|it| it.receiver.window().rtt_us());
                (rtts.max().unwrap_or(0), subflows.iter().any(|it| it.receiver.is_unused()))
            };
            if let Some(copied) = self.window.on_read(now, next, &self.stack, of_subflows) {
                self.subflows.iter_mut().for_each(|it| it.receiver.follow_window(copied));
            }
        }
    }

    /// The application has read all data: ends of writes are acknowledged (`mptcp_cleanup_rbuf`).
    #[inline]
    fn acknowledge_writes(&mut self) {
        for (subflow, bit) in self.subflows.iter_mut().zip(0..) {
            if std::mem::take(&mut subflow.is_pushed) && subflow.receiver.acknowledge() {
                subflow.unread = 0;
                self.pending_mask |= 1 << bit;
            }
        }
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
            let (subflow, next) = (&mut self.subflows[port as usize], self.data.next());
            if let Some((mut reply, window)) = subflow.poll(now, &mut self.window, next) {
                self.port = port as u8;
                reply.set_data_ack(next, window, &self.stack, self.data_ack_len);
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
