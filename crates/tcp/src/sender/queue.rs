//! A sender whose user enqueues packets one by one: a stream that is written while it is sent.

use super::{Sender, SenderConfig};

impl Sender {
    /// A sender with nothing to send yet, which connects at `config.start`. Each packet is a write of
    /// its own, of at most a segment's payload, as with `TCP_NODELAY`.
    pub fn with_empty_queue(config: SenderConfig) -> Sender {
        let mut sender = Sender::new(config);
        sender.packets = 0;
        sender
    }

    /// Enqueues packets, to be sent in order.
    #[inline]
    pub fn enqueue(&mut self, packets: u32) {
        self.packets += packets;
    }

    /// The first packet that is not acknowledged cumulatively (SND.UNA).
    pub fn first_unacknowledged(&self) -> u32 {
        self.scoreboard.una()
    }
}
