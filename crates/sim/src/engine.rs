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
use crate::timers::{HasTimer, Timer, Timers};
use dumbbell_net::{
    DropReason, Endpoint, Link, LinkId, LinkStatistics, Packet, RouteId, Routes, prefetch,
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
struct Routing(u32);

impl Routing {
    #[inline]
    fn new(from: EndpointId) -> Routing {
        Routing(from.0 << 8)
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
    fn next_hop(self) -> Routing {
        Routing(self.0 + 1)
    }
}

/// A packet with its envelope.
#[derive(Clone, Copy, Debug)]
pub struct InFlight<P> {
    routing: Routing,
    packet: P,
}

const _: () = assert!(size_of::<InFlight<crate::pdu::Pdu>>() == 40);

impl<P> InFlight<P> {
    #[inline]
    fn from(&self) -> EndpointId {
        self.routing.from()
    }

    #[inline]
    fn to(&self) -> EndpointId {
        self.from().peer()
    }
}

impl<P: Packet> Packet for InFlight<P> {
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

/// An endpoint that the [`Engine`] can run.
///
/// Each of its ports is connected to the port of the same number at the peer. A multipath
/// connection has one port per subflow; all others have port 0 only and need no method here.
pub trait SimEndpoint: Endpoint {
    /// The number of ports, at least one.
    fn ports(&self) -> u8 {
        1
    }

    /// Processes a packet that arrived at `now` on `port`.
    #[inline]
    fn handle_on_port(&mut self, now: Time, _port: u8, packet: &Self::Packet) {
        self.handle(now, packet);
    }

    /// The port of the packet that [`poll`](Endpoint::poll) returned last.
    #[inline]
    fn outgoing_port(&self) -> u8 {
        0
    }

    /// Prefetches the endpoint's own memory, for a packet that arrives soon; see
    /// [`prefetch`](dumbbell_net::prefetch()). Affects nothing but speed.
    #[inline]
    fn prefetch(&self) {}

    /// Prefetches what the endpoint points to. Called later than [`prefetch`](Self::prefetch), as
    /// it reads the pointers.
    #[inline]
    fn prefetch_indirect(&self) {}
}

/// Somebody who looks on as packets travel. Costs nothing where nothing is overridden.
pub trait Observer<P> {
    /// An endpoint sent a packet.
    #[inline]
    fn on_sent(&mut self, _now: Time, _from: EndpointId, _packet: &P) {}

    /// A packet is about to be handed to an endpoint.
    #[inline]
    fn on_delivered(&mut self, _now: Time, _to: EndpointId, _packet: &P) {}

    /// A packet did not get onto a link, or was dropped while it waited for it. The latter is told
    /// when the link is next looked at, so `now` may lie in the past.
    #[inline]
    fn on_dropped(
        &mut self,
        _now: Time,
        _from: EndpointId,
        _at: LinkId,
        _why: DropReason,
        _packet: &P,
    ) {
    }

    /// A packet is to be handed to an endpoint soon; see [`SimEndpoint::prefetch`].
    #[inline]
    fn prefetch(&self, _to: EndpointId) {}

    /// And sooner; see [`SimEndpoint::prefetch_indirect`].
    #[inline]
    fn prefetch_indirect(&self, _to: EndpointId) {}
}

impl<P> Observer<P> for () {}

/// Links, endpoints and the clock.
pub struct Engine<E: Endpoint, O = ()> {
    now: Time,
    events: u64,
    /// When the next packet comes out of each link.
    arrivals: Arrivals,
    /// When each endpoint acts, by its first port.
    timers: Timers,
    links: Vec<Link<InFlight<E::Packet>>>,
    routes: Routes,
    /// By port.
    slots: Vec<PortSlot<E>>,
    /// Whether there are so many endpoints that asking for their memory pays.
    prefetch_enabled: bool,
    observer: O,
}

/// From how many ports on the endpoints are too many for the caches next to a processor.
const PREFETCH_MIN_PORTS: usize = 500;
/// How many packets before its turn memory is asked for: the packet's own, then where the endpoint
/// is that it goes to, then the endpoint, then what that points to. Each needs what the one before
/// has brought.
const PREFETCH_DISTANCE: [usize; 4] = [28, 16, 10, 4];

/// What there is at a port: a cache line, as with many flows it is in no cache when a packet comes.
#[repr(align(64))]
struct PortSlot<E> {
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

const _: () = assert!(size_of::<PortSlot<crate::host::Host>>() == 64, "one cache line");

impl<E> HasTimer for PortSlot<E> {
    #[inline]
    fn timer(&self) -> &Timer {
        &self.timer
    }

    #[inline]
    fn timer_mut(&mut self) -> &mut Timer {
        &mut self.timer
    }
}

impl<E> PortSlot<E> {
    #[inline]
    fn endpoint(&self) -> &E {
        self.endpoint.as_ref().expect("an endpoint sits at its first port")
    }

    #[inline]
    fn endpoint_mut(&mut self) -> &mut E {
        self.endpoint.as_mut().expect("an endpoint sits at its first port")
    }
}

impl<E, O> Engine<E, O>
where
    E: SimEndpoint,
    E::Packet: Packet + Copy,
    O: Observer<E::Packet>,
{
    /// The most ports that there may be.
    pub const MAX_PORTS: usize = 1 << 24;

    /// Sets the clock to zero. An endpoint, of one port each, starts when its first timeout says.
    ///
    /// # Panics
    /// As [`Engine::with_ports`].
    pub fn new(
        links: Vec<Link<InFlight<E::Packet>>>,
        routes: Routes,
        endpoints: impl IntoIterator<Item = (E, RouteId)>,
        observer: O,
    ) -> Engine<E, O> {
        let (endpoints, routes_of): (Vec<E>, Vec<RouteId>) = endpoints.into_iter().unzip();
        Engine::with_ports(links, routes, endpoints, &routes_of, observer)
    }

    /// The same with endpoints of any number of ports; `routes_of` has the route of every port, by
    /// their numbers.
    ///
    /// # Panics
    /// If the endpoints are not in pairs of as many ports each, if there is not one route for each
    /// port, if there are more than [`Engine::MAX_PORTS`], or if a route is without links.
    pub fn with_ports(
        mut links: Vec<Link<InFlight<E::Packet>>>,
        routes: Routes,
        endpoints: Vec<E>,
        routes_of: &[RouteId],
        observer: O,
    ) -> Engine<E, O> {
        assert!(routes_of.len() <= Self::MAX_PORTS, "a port's number has 24 bits");
        assert!(endpoints.len().is_multiple_of(2), "endpoints come in pairs");
        let mut slots = Vec::with_capacity(routes_of.len());
        let mut endpoints = endpoints.into_iter();
        while let (Some(one), Some(other)) = (endpoints.next(), endpoints.next()) {
            assert_eq!(one.ports(), other.ports(), "a port talks to another");
            let ports = one.ports();
            let mut ends = [Some(one), Some(other)];
            for port in 0..ports {
                for end in &mut ends {
                    let number = slots.len();
                    let first = routes.hop(routes_of[number], 0);
                    let endpoint = end.take();
                    let due = endpoint.as_ref().map_or(Time::MAX, E::next_timeout);
                    slots.push(PortSlot {
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
        assert_eq!(slots.len(), routes_of.len(), "a port has one route");
        let arrivals = Arrivals::new(links.len());
        let timers = Timers::new(&mut slots);
        links.iter_mut().for_each(Link::record_discarded);
        let prefetch_enabled = slots.len() >= PREFETCH_MIN_PORTS;
        let (now, events) = (Time::ZERO, 0);
        Engine { now, events, arrivals, timers, links, routes, slots, prefetch_enabled, observer }
    }

    /// Lets everything happen that happens until `end`, `end` included.
    pub fn run_until(&mut self, end: Time) {
        loop {
            let (arrival, link) = self.arrivals.first();
            let (due, port) = self.timers.first(&mut self.slots);
            let next = arrival.min(due);
            if next > end || next == Time::MAX {
                break;
            }
            self.now = next;
            self.events += 1;
            if arrival <= due {
                self.handle_arrival(link);
            } else {
                self.handle_timer(port);
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
        self.slots[self.first_port(id).0 as usize].endpoint()
    }

    /// What the link has done until now, and what waits on it.
    pub fn link_statistics(&mut self, id: LinkId) -> LinkStatistics {
        let statistics = self.links[id.0 as usize].statistics(self.now);
        self.report_discarded(id);
        statistics
    }

    /// Packets on all links.
    pub fn in_transit(&self) -> usize {
        self.links.iter().map(Link::len).sum()
    }

    /// Who looks on.
    pub fn observer(&self) -> &O {
        &self.observer
    }

    /// Who looks on, to take from it what it has seen.
    pub fn observer_mut(&mut self) -> &mut O {
        &mut self.observer
    }

    /// When something happens next, unless somebody sends earlier.
    pub fn next_event(&mut self) -> Option<Time> {
        let next = self.arrivals.first().0.min(self.timers.first(&mut self.slots).0);
        (next < Time::MAX).then_some(next)
    }

    /// A port sends a packet now. For packets that do not come from an endpoint's
    /// [`poll`](Endpoint::poll).
    pub fn send(&mut self, from: EndpointId, packet: E::Packet) {
        let first = self.slots[from.0 as usize].outgoing;
        self.forward(first, Routing::new(from), &packet);
    }

    /// Ends the run; gives who looked on.
    pub fn into_observer(self) -> O {
        self.observer
    }

    /// A packet comes out of a link: to the next link, or to its receiver.
    #[inline(always)]
    fn handle_arrival(&mut self, number: u32) {
        let link = &mut self.links[number as usize];
        let in_flight = link.pop(self.now);
        self.arrivals.set(number, link.next_arrival());
        if !link.next_arrival_is_final() {
            self.report_discarded(LinkId(number));
        }
        if self.prefetch_enabled {
            self.prefetch_next(number as usize);
        }
        let Some(in_flight) = in_flight else { return };
        let (to, routing) = (in_flight.to(), in_flight.routing.next_hop());
        let route = self.slots[to.0 as usize].incoming;
        match self.routes.hop(route, routing.hop()) {
            Some(next) => self.forward(next, routing, &in_flight.packet),
            None => self.deliver(to, &in_flight.packet),
        }
    }

    /// Asks for the memory of those to whom packets are about to come out of a link.
    #[inline]
    fn prefetch_next(&mut self, number: usize) {
        let Some([in_flight, slot, endpoint, further]) = self.links[number].peek(PREFETCH_DISTANCE)
        else {
            return;
        };
        prefetch(in_flight);
        prefetch(&self.slots[slot.to().0 as usize]);
        let to = endpoint.to();
        if let Some(endpoint) = &self.slots[to.0 as usize].endpoint {
            endpoint.prefetch();
        }
        self.observer.prefetch(to);
        let to = further.to();
        if let Some(endpoint) = &self.slots[to.0 as usize].endpoint {
            endpoint.prefetch_indirect();
        }
        self.observer.prefetch_indirect(to);
    }

    /// A packet comes to a link. Inlined, as is all that makes TCP's packets, so that a packet is
    /// written part by part to its place on the link: a copy of what was just written so would have to
    /// wait until it is in memory.
    #[inline(always)]
    fn forward(&mut self, to: LinkId, routing: Routing, packet: &E::Packet) {
        let link = &mut self.links[to.0 as usize];
        let was_settled = link.next_arrival_is_final();
        match link.push(self.now, InFlight { routing, packet: *packet }) {
            Ok(()) if was_settled => return,
            Ok(()) => self.arrivals.set(to.0, link.next_arrival()),
            Err(why) => self.observer.on_dropped(self.now, routing.from(), to, why, packet),
        }
        if !was_settled {
            self.report_discarded(to);
        }
    }

    /// Tells of the packets that a link accepted and dropped later.
    #[cold]
    #[inline(never)]
    fn report_discarded(&mut self, id: LinkId) {
        while let Some((at, why, in_flight)) = self.links[id.0 as usize].take_discarded() {
            self.observer.on_dropped(at, in_flight.from(), id, why, &in_flight.packet);
        }
    }

    #[inline(always)]
    fn deliver(&mut self, to: EndpointId, packet: &E::Packet) {
        self.observer.on_delivered(self.now, to, packet);
        let port = self.slots[to.0 as usize].port;
        let id = to.first(port);
        self.slots[id.0 as usize].endpoint_mut().handle_on_port(self.now, port, packet);
        self.poll_endpoint(id);
    }

    /// The first port of the endpoint that has this one.
    #[inline]
    fn first_port(&self, id: EndpointId) -> EndpointId {
        id.first(self.slots[id.0 as usize].port)
    }

    /// An endpoint's timer has come up.
    fn handle_timer(&mut self, port: u32) {
        if self.timers.expire(&mut self.slots[port as usize], port, self.now) {
            self.poll_endpoint(EndpointId(port));
            self.timers.finish_expiry(&self.slots[port as usize], port);
        }
    }

    /// Sends all that an endpoint has to send, and looks at its timer.
    #[inline(always)]
    fn poll_endpoint(&mut self, id: EndpointId) {
        loop {
            let slot = &mut self.slots[id.0 as usize];
            let Some(packet) = slot.endpoint_mut().poll(self.now) else { break };
            let (from, first) = match slot.endpoint().outgoing_port() {
                0 => (id, slot.outgoing),
                port => {
                    let from = EndpointId(id.0 + 2 * u32::from(port));
                    (from, self.slots[from.0 as usize].outgoing)
                }
            };
            self.observer.on_sent(self.now, from, &packet);
            self.forward(first, Routing::new(from), &packet);
        }
        let slot = &mut self.slots[id.0 as usize];
        let due = slot.endpoint().next_timeout();
        self.timers.set(slot, id.0, self.now, due);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routing_packs_sender_and_hop() {
        let routing = Routing::new(EndpointId(0xabcdef));
        assert_eq!((routing.from(), routing.hop()), (EndpointId(0xabcdef), 0));
        let next = routing.next_hop();
        assert_eq!((next.from(), next.hop()), (EndpointId(0xabcdef), 1));
    }
}
