//! Which packet a delivery rate sample is taken from.

use crate::scoreboard::Packet;
use dumbbell_cc::NewestDelivered;

/// The newest packet that an acknowledgement delivers (the draft's rate sample in the making).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Newest {
    pub(crate) number: u32,
    pub(crate) packet: Packet,
}

impl Newest {
    /// What was kept of it when it was sent.
    #[inline]
    pub(crate) fn delivered(&self) -> NewestDelivered<'_> {
        let Packet { stamp, first_sent_at, delivered_at, .. } = &self.packet;
        let (first_sent_at, delivered_at) = (*first_sent_at, *delivered_at);
        NewestDelivered { stamp, first_sent_at, delivered_at }
    }

    /// Whether `packet` was sent after this one; at the same instant the higher number is later.
    #[inline]
    pub(crate) fn is_older_than(&self, number: u32, packet: &Packet) -> bool {
        (self.packet.stamp.sent_at, self.number) < (packet.stamp.sent_at, number)
    }
}
