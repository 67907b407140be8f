//! What only some links have: a managed queue, and a far end that does not deliver evenly.
//!
//! A managed queue decides which packet is sent, if any, when the server is free to send one. So
//! its packets wait outside of the link's ring and get a departure only then. Nobody need look at
//! the link at that time: as nothing else happens between two packets that come, the decisions up
//! to a given time can be made up for in one go whenever somebody does.

use crate::aqm::Managed;
use crate::server::Server;
use crate::tail::Tail;
use crate::{LinkConfig, Packet};
use dumbbell_units::{Span, Time};

#[derive(Clone, Debug)]
pub(crate) struct Extras<P> {
    pub(crate) managed: Option<Managed<P>>,
    pub(crate) tail: Option<Tail<P>>,
    /// When a packet last came or began to be sent.
    pub(crate) clock: Time,
}

impl<P: Packet> Extras<P> {
    /// The extras of a link, if it has any.
    pub(crate) fn new(config: &LinkConfig, server: &Server) -> Option<Extras<P>> {
        let LinkConfig { aqm, queue, jitter, reordering, seed, .. } = *config;
        let managed = aqm.map(|aqm| Managed::new(aqm, queue, server, seed));
        let is_even = jitter.is_zero() && reordering.share == 0.0;
        let tail = (!is_even).then(|| Tail::new(jitter, reordering, seed));
        let has_any = managed.is_some() || tail.is_some();
        has_any.then_some(Extras { managed, tail, clock: Time::ZERO })
    }

    /// The next packet that is sent by `now`, and when its transmission begins.
    pub(crate) fn dequeue(&mut self, now: Time, server: &Server) -> Option<(Time, P)> {
        let managed = self.managed.as_mut()?;
        while managed.waiting().packets > 0 {
            let start = server.start(self.clock);
            if start > now {
                break;
            }
            self.clock = start;
            if let Some(packet) = managed.dequeue(start) {
                return Some((start, packet));
            }
        }
        None
    }

    /// No packet from here comes out earlier than this.
    pub(crate) fn next(&self, server: &Server, delay: Span) -> Time {
        let waits = self.managed.as_ref().is_some_and(|managed| managed.waiting().packets > 0);
        let start = if waits { server.start(self.clock) } else { Time::MAX };
        self.tail.as_ref().map_or(Time::MAX, Tail::next).min(start + delay)
    }

    /// Packets that are in no ring.
    pub(crate) fn len(&self) -> usize {
        let waiting = self.managed.as_ref().map_or(0, |managed| managed.waiting().packets);
        waiting as usize + self.tail.as_ref().map_or(0, Tail::len)
    }
}
