//! The event loop: a virtual clock, links, and the endpoints that send over them.
//!
//! Nothing here knows a protocol. Endpoints come in pairs, and so do their ports: number 2i and
//! 2i + 1 talk to each other, each over a route of its own. Most endpoints have one port; the
//! ports of those that have several follow each other in steps of two. An endpoint goes by the
//! number of its first port. Two things make something happen: a packet comes out of a link, or an
//! endpoint's timer is due.
//!
//! Links and timers have an event queue each: with thousands of flows nearly all that happens is that
//! packets come out of a few links. Of two things at one time, a packet comes first.
//!
//! The state of thousands of endpoints is in no cache. As links are first in, first out, it is
//! known whose packets come out next, and their memory is asked for ahead of time.

use crate::arrivals::Arrivals;
use crate::timers::{Timed, Timer, Timers};
use dumbbell_net::{
    Dropped, Endpoint, Link, LinkId, Packet, RouteId, Routes, Statistics, prefetch,
};
use dumbbell_units::Time;

/// The number of a port, or of the endpoint whose first port it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EndpointId(pub u32);

impl EndpointId {
    /// The port, or the endpoint, that this one talks to.
    #[inline]
    pub fn peer(self) -> EndpointId {
        EndpointId(self.0 ^ 1)
    }

    /// The first port of the endpoint of which this is port number `port`.
    #[inline]
    fn first(self, port: u8) -> EndpointId {
        EndpointId(self.0 - 2 * u32::from(port))
    }

    /// Whether data comes to this port and acknowledgements leave by it: of a pair, the second.
    #[inline]
    pub(crate) fn is_receiver(self) -> bool {
        self.0 & 1 == 1
    }

    /// The number of the pair.
    #[inline]
    pub fn pair(self) -> u32 {
        self.0 >> 1
    }
}

/// The port that a packet comes from (24 bits) and which hop of the route it is on (8 bits).
#[derive(Clone, Copy, Debug)]
struct Envelope(u32);

impl Envelope {
    #[inline]
    fn new(from: EndpointId) -> Envelope {
        Envelope(from.0 << 8)
    }

    #[inline]
    fn from(self) -> EndpointId {
        EndpointId(self.0 >> 8)
    }

    #[inline]
    fn hop(self) -> u8 {
        self.0 as u8
    }

    #[inline]
    fn next_hop(self) -> Envelope {
        Envelope(self.0 + 1)
    }
}

/// A packet with its envelope.
#[derive(Clone, Copy, Debug)]
pub struct Parcel<P> {
    envelope: Envelope,
    packet: P,
}

impl<P> Parcel<P> {
    #[inline]
    fn from(&self) -> EndpointId {
        self.envelope.from()
    }

    #[inline]
    fn to(&self) -> EndpointId {
        self.from().peer()
    }
}

impl<P: Packet> Packet for Parcel<P> {
    #[inline]
    fn size(&self) -> u32 {
        self.packet.size()
    }

    fn flow(&self) -> u32 {
        self.from().0
    }

    fn is_ecn_capable(&self) -> bool {
        self.packet.is_ecn_capable()
    }

    fn mark(&mut self) {
        self.packet.mark();
    }
}

/// Somebody who looks on as packets travel. Costs nothing where nothing is overridden.
pub trait Watch<P> {
    /// An endpoint sent a packet.
    #[inline]
    fn sent(&mut self, _now: Time, _from: EndpointId, _packet: &P) {}

    /// A packet is about to be handed to an endpoint.
    #[inline]
    fn delivered(&mut self, _now: Time, _to: EndpointId, _packet: &P) {}

    /// A packet did not get onto a link, or was dropped while it waited for it. The latter is told
    /// when the link is next looked at, so `now` may lie in the past.
    #[inline]
    fn dropped(&mut self, _now: Time, _from: EndpointId, _at: LinkId, _why: Dropped, _packet: &P) {}

    /// A packet is to be handed to an endpoint soon; see [`Endpoint::prefetch`].
    #[inline]
    fn prefetch(&self, _to: EndpointId) {}

    /// And sooner; see [`Endpoint::prefetch_further`].
    #[inline]
    fn prefetch_further(&self, _to: EndpointId) {}
}

impl<P> Watch<P> for () {}

/// Links, endpoints and the clock.
pub struct Engine<E: Endpoint, W = ()> {
    now: Time,
    events: u64,
    /// When the next packet comes out of each link.
    arrivals: Arrivals,
    /// When each endpoint acts, by its first port.
    timers: Timers,
    links: Vec<Link<Parcel<E::Packet>>>,
    routes: Routes,
    /// By port.
    seats: Vec<Seat<E>>,
    /// Whether there are so many endpoints that asking for their memory pays.
    is_crowded: bool,
    watch: W,
}

/// From how many ports on the endpoints are too many for the caches next to a processor.
const CROWD: usize = 500;
/// How many packets before its turn memory is asked for: the packet's own, then where the endpoint
/// is that it goes to, then the endpoint, then what that points to. Each needs what the one before
/// has brought.
const AHEAD: [usize; 4] = [28, 16, 10, 4];

/// What there is at a port: a cache line, as with many flows it is in no cache when a packet comes.
#[repr(align(64))]
struct Seat<E> {
    /// At an endpoint's first port, the endpoint.
    endpoint: Option<E>,
    /// At an endpoint's first port, its timer.
    timer: Timer,
    /// The route of packets that come to this port.
    incoming: RouteId,
    /// The first link of those that leave by it.
    outgoing: LinkId,
    /// Which of its endpoint's ports it is.
    port: u8,
}

impl<E> Timed for Seat<E> {
    #[inline]
    fn timer(&self) -> &Timer {
        &self.timer
    }

    #[inline]
    fn timer_mut(&mut self) -> &mut Timer {
        &mut self.timer
    }
}

impl<E> Seat<E> {
    #[inline]
    fn endpoint(&self) -> &E {
        self.endpoint.as_ref().expect("an endpoint sits at its first port")
    }

    #[inline]
    fn endpoint_mut(&mut self) -> &mut E {
        self.endpoint.as_mut().expect("an endpoint sits at its first port")
    }
}

impl<E, W> Engine<E, W>
where
    E: Endpoint,
    E::Packet: Packet + Copy,
    W: Watch<E::Packet>,
{
    /// The most ports that there may be.
    pub const MAX_PORTS: usize = 1 << 24;

    /// Sets the clock to zero. An endpoint, of one port each, starts when its first timeout says.
    ///
    /// # Panics
    /// As [`Engine::with_ports`].
    pub fn new(
        links: Vec<Link<Parcel<E::Packet>>>,
        routes: Routes,
        endpoints: impl IntoIterator<Item = (E, RouteId)>,
        watch: W,
    ) -> Engine<E, W> {
        let (endpoints, routes_of): (Vec<E>, Vec<RouteId>) = endpoints.into_iter().unzip();
        Engine::with_ports(links, routes, endpoints, &routes_of, watch)
    }

    /// The same with endpoints of any number of ports; `routes_of` has the route of every port, by
    /// their numbers.
    ///
    /// # Panics
    /// If the endpoints are not in pairs of as many ports each, if there is not one route for each
    /// port, if there are more than [`Engine::MAX_PORTS`], or if a route is without links.
    pub fn with_ports(
        mut links: Vec<Link<Parcel<E::Packet>>>,
        routes: Routes,
        endpoints: Vec<E>,
        routes_of: &[RouteId],
        watch: W,
    ) -> Engine<E, W> {
        assert!(routes_of.len() <= Self::MAX_PORTS, "a port's number has 24 bits");
        assert!(endpoints.len().is_multiple_of(2), "endpoints come in pairs");
        let mut seats = Vec::with_capacity(routes_of.len());
        let mut endpoints = endpoints.into_iter();
        while let (Some(one), Some(other)) = (endpoints.next(), endpoints.next()) {
            assert_eq!(one.ports(), other.ports(), "a port talks to another");
            let ports = one.ports();
            let mut ends = [Some(one), Some(other)];
            for port in 0..ports {
                for end in &mut ends {
                    let number = seats.len();
                    let first = routes.hop(routes_of[number], 0);
                    let endpoint = end.take();
                    let due = endpoint.as_ref().map_or(Time::MAX, E::next_timeout);
                    seats.push(Seat {
                        endpoint,
                        timer: Timer::new(due),
                        // Ports 2i and 2i + 1 talk to each other.
                        incoming: routes_of[number ^ 1],
                        outgoing: first.expect("a route has at least one link"),
                        port,
                    });
                }
            }
        }
        assert_eq!(seats.len(), routes_of.len(), "a port has one route");
        let arrivals = Arrivals::new(links.len());
        let timers = Timers::new(&mut seats);
        links.iter_mut().for_each(Link::keep_discarded);
        let is_crowded = seats.len() >= CROWD;
        let (now, events) = (Time::ZERO, 0);
        Engine { now, events, arrivals, timers, links, routes, seats, is_crowded, watch }
    }

    /// Lets everything happen that happens until `end`, `end` included.
    pub fn run_until(&mut self, end: Time) {
        loop {
            let (arrival, link) = self.arrivals.first();
            let (due, port) = self.timers.first(&mut self.seats);
            let next = arrival.min(due);
            if next > end || next == Time::MAX {
                break;
            }
            self.now = next;
            self.events += 1;
            if arrival <= due {
                self.arrive(link);
            } else {
                self.expire(port);
            }
        }
        self.now = self.now.max(end);
    }

    /// The present.
    pub fn now(&self) -> Time {
        self.now
    }

    /// How many events there were: packets that came out of a link, and timers.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// The endpoint that has the port.
    #[inline]
    pub fn endpoint(&self, id: EndpointId) -> &E {
        self.seats[self.first_port(id).0 as usize].endpoint()
    }

    /// What the link has done until now, and what waits on it.
    pub fn link_statistics(&mut self, id: LinkId) -> Statistics {
        let statistics = self.links[id.0 as usize].statistics(self.now);
        self.report_discarded(id);
        statistics
    }

    /// Packets on all links.
    pub fn in_transit(&self) -> usize {
        self.links.iter().map(Link::len).sum()
    }

    /// Who looks on.
    pub fn watch(&self) -> &W {
        &self.watch
    }

    /// Who looks on, to take from it what it has seen.
    pub fn watch_mut(&mut self) -> &mut W {
        &mut self.watch
    }

    /// When something happens next, unless somebody sends earlier.
    pub fn next_event(&mut self) -> Option<Time> {
        let next = self.arrivals.first().0.min(self.timers.first(&mut self.seats).0);
        (next < Time::MAX).then_some(next)
    }

    /// A port sends a packet now. For packets that do not come from an endpoint's
    /// [`poll`](Endpoint::poll).
    pub fn send(&mut self, from: EndpointId, packet: E::Packet) {
        let first = self.seats[from.0 as usize].outgoing;
        self.forward(first, Envelope::new(from), &packet);
    }

    /// Ends the run; gives who looked on.
    pub fn into_watch(self) -> W {
        self.watch
    }

    /// A packet comes out of a link: to the next link, or to its receiver.
    #[inline(always)]
    fn arrive(&mut self, number: u32) {
        let link = &mut self.links[number as usize];
        let parcel = link.pop(self.now);
        self.arrivals.set(number, link.next_arrival());
        if !link.is_settled() {
            self.report_discarded(LinkId(number));
        }
        if self.is_crowded {
            self.look_ahead(number as usize);
        }
        let Some(parcel) = parcel else { return };
        let (to, envelope) = (parcel.to(), parcel.envelope.next_hop());
        let route = self.seats[to.0 as usize].incoming;
        match self.routes.hop(route, envelope.hop()) {
            Some(next) => self.forward(next, envelope, &parcel.packet),
            None => self.deliver(to, &parcel.packet),
        }
    }

    /// Asks for the memory of those to whom packets are about to come out of a link.
    #[inline]
    fn look_ahead(&mut self, number: usize) {
        let Some([parcel, seat, endpoint, further]) = self.links[number].peek(AHEAD) else {
            return;
        };
        prefetch(parcel);
        prefetch(&self.seats[seat.to().0 as usize]);
        let to = endpoint.to();
        if let Some(endpoint) = &self.seats[to.0 as usize].endpoint {
            endpoint.prefetch();
        }
        self.watch.prefetch(to);
        let to = further.to();
        if let Some(endpoint) = &self.seats[to.0 as usize].endpoint {
            endpoint.prefetch_further();
        }
        self.watch.prefetch_further(to);
    }

    /// A packet comes to a link. Inlined, as is all that makes TCP's packets, so that a packet is
    /// written part by part to its place on the link: a copy of what was just written so would have to
    /// wait until it is in memory.
    #[inline(always)]
    fn forward(&mut self, to: LinkId, envelope: Envelope, packet: &E::Packet) {
        let link = &mut self.links[to.0 as usize];
        let was_settled = link.is_settled();
        match link.push(self.now, Parcel { envelope, packet: *packet }) {
            Ok(()) if was_settled => return,
            Ok(()) => self.arrivals.set(to.0, link.next_arrival()),
            Err(why) => self.watch.dropped(self.now, envelope.from(), to, why, packet),
        }
        if !was_settled {
            self.report_discarded(to);
        }
    }

    /// Tells of the packets that a link accepted and dropped later.
    #[cold]
    #[inline(never)]
    fn report_discarded(&mut self, id: LinkId) {
        while let Some((at, why, parcel)) = self.links[id.0 as usize].take_discarded() {
            self.watch.dropped(at, parcel.from(), id, why, &parcel.packet);
        }
    }

    #[inline(always)]
    fn deliver(&mut self, to: EndpointId, packet: &E::Packet) {
        self.watch.delivered(self.now, to, packet);
        let port = self.seats[to.0 as usize].port;
        let id = to.first(port);
        self.seats[id.0 as usize].endpoint_mut().handle_at(self.now, port, packet);
        self.drive(id);
    }

    /// The first port of the endpoint that has this one.
    #[inline]
    fn first_port(&self, id: EndpointId) -> EndpointId {
        id.first(self.seats[id.0 as usize].port)
    }

    /// An endpoint's timer has come up.
    fn expire(&mut self, port: u32) {
        if self.timers.expire(&mut self.seats[port as usize], port, self.now) {
            self.drive(EndpointId(port));
            self.timers.settle(&self.seats[port as usize], port);
        }
    }

    /// Sends all that an endpoint has to send, and looks at its timer.
    #[inline(always)]
    fn drive(&mut self, id: EndpointId) {
        loop {
            let seat = &mut self.seats[id.0 as usize];
            let Some(packet) = seat.endpoint_mut().poll(self.now) else { break };
            let (from, first) = match seat.endpoint().port() {
                0 => (id, seat.outgoing),
                port => {
                    let from = EndpointId(id.0 + 2 * u32::from(port));
                    (from, self.seats[from.0 as usize].outgoing)
                }
            };
            self.watch.sent(self.now, from, &packet);
            self.forward(first, Envelope::new(from), &packet);
        }
        let seat = &mut self.seats[id.0 as usize];
        let due = seat.endpoint().next_timeout();
        self.timers.set(seat, id.0, self.now, due);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Host;
    use crate::pdu::Pdu;

    #[test]
    fn a_packet_in_flight_takes_40_bytes() {
        assert_eq!(size_of::<Parcel<Pdu>>(), 40);
        assert_eq!(size_of::<Option<Pdu>>(), 36);
    }

    #[test]
    fn a_seat_takes_a_cache_line() {
        assert_eq!(size_of::<Seat<Host>>(), 64);
    }

    #[test]
    fn an_envelope_tells_sender_and_hop() {
        let envelope = Envelope::new(EndpointId(0xabcdef));
        assert_eq!((envelope.from(), envelope.hop()), (EndpointId(0xabcdef), 0));
        let next = envelope.next_hop();
        assert_eq!((next.from(), next.hop()), (EndpointId(0xabcdef), 1));
    }
}
