//! Which packet a delivery rate sample is taken from.

use crate::scoreboard::Packet;
use dumbbell_cc::Departure;

/// The newest packet that an acknowledgement delivers (the draft's rate sample in the making).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Newest {
    pub(crate) number: u32,
    /// What was kept of it when it was sent.
    pub(crate) departure: Departure,
}

impl Newest {
    #[inline]
    pub(crate) fn new(number: u32, packet: &Packet) -> Newest {
        let &Packet { stamp, first_sent_at, delivered_at, .. } = packet;
        Newest { number, departure: Departure { stamp, first_sent_at, delivered_at } }
    }

    /// Whether `packet` was sent after this one; at the same instant the higher number is later.
    #[inline]
    pub(crate) fn is_older_than(&self, number: u32, packet: &Packet) -> bool {
        (self.departure.stamp.sent_at, self.number) < (packet.stamp.sent_at, number)
    }
}
