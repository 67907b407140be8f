//! The event loop: a virtual clock, links, and the endpoints that send over them.
//!
//! The engine is independent of protocols. Endpoints come in pairs, and so do their ports: ports 2i
//! and 2i + 1 exchange packets, each over its own route. Most endpoints have one port. The ports of
//! a multipath endpoint are numbered in steps of two, and the endpoint is identified by its first
//! port. There are two kinds of events: a packet arrives from a link, or an endpoint's timer
//! expires.
//!
//! Links and timers have separate event queues, because with thousands of flows nearly all events
//! are arrivals from a few links. At equal times arrivals come before timers.
//!
//! The state of thousands of endpoints does not fit into the caches. Links are first in, first out,
//! so the next receivers are known and their memory is prefetched.

use crate::link_arrivals::LinkArrivals;
use crate::observer::Observer;
use crate::sim_endpoint::SimEndpoint;
use crate::timers::{EndpointTimer, HasTimer, Timers};
use dumbbell_net::{Endpoint, Link, LinkId, LinkStatistics, Packet, RouteId, Routes, prefetch};
use dumbbell_units::Time;

/// The number of a port, or of the endpoint whose first port it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EndpointId(pub u32);

impl EndpointId {
    /// The port, or endpoint, at the other end.
    #[inline]
    pub fn peer(self) -> EndpointId {
        EndpointId(self.0 ^ 1)
    }

    /// The first port of the endpoint whose port number `port` this is.
    #[inline]
    fn first(self, port: u8) -> EndpointId {
        EndpointId(self.0 - 2 * u32::from(port))
    }

    /// Whether data arrives at this port: the second of a pair.
    #[inline]
    pub(crate) fn is_receiver(self) -> bool {
        self.0 & 1 == 1
    }

    /// The number of the pair of ports.
    #[inline]
    pub fn pair(self) -> u32 {
        self.0 >> 1
    }
}

/// The sending port (24 bits) and the current hop of the route (8 bits) of a packet.
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

/// A packet on a link, with its sender and hop: 40 bytes. At 10 Gbit/s and 100 ms more than 80,000
/// packets are in flight, so their size decides how much of a link fits into the caches.
#[derive(Copy, Debug)]
pub struct RoutedPacket<P> {
    routing: Routing,
    packet: P,
}

/// As a whole: a derived clone copies field by field, and the next read of the whole would wait for that.
impl<P: Copy> Clone for RoutedPacket<P> {
    #[inline]
    fn clone(&self) -> RoutedPacket<P> {
        *self
    }
}

const _: () = assert!(size_of::<RoutedPacket<crate::pdu::Pdu>>() == 40);

impl<P> RoutedPacket<P> {
    #[inline]
    fn from(&self) -> EndpointId {
        self.routing.from()
    }

    #[inline]
    fn to(&self) -> EndpointId {
        self.from().peer()
    }
}

impl<P: Packet + Copy> Packet for RoutedPacket<P> {
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

    fn is_l4s(&self) -> bool {
        self.packet.is_l4s()
    }

    fn mark(&mut self) {
        self.packet.mark();
    }

    fn is_marked(&self) -> bool {
        self.packet.is_marked()
    }

    fn is_pure_ack(&self) -> bool {
        self.packet.is_pure_ack()
    }

    fn supersedes(&self, earlier: &Self) -> bool {
        self.packet.supersedes(&earlier.packet)
    }

    fn ecn_echo(&self) -> u8 {
        self.packet.ecn_echo()
    }
}

/// The simulation engine: links, endpoints and the clock.
pub struct Engine<E: Endpoint, O = ()> {
    now: Time,
    events: u64,
    /// When each link delivers its next packet.
    arrivals: LinkArrivals,
    /// The endpoints' timers, by first port.
    timers: Timers,
    links: Vec<Link<RoutedPacket<E::Packet>>>,
    routes: Routes,
    /// By port number.
    slots: Vec<PortSlot<E>>,
    /// Whether there are enough ports for prefetching to pay.
    prefetch_enabled: bool,
    observer: O,
}

/// From this many ports on their state exceeds the first caches, and prefetching pays.
const PREFETCH_MIN_PORTS: usize = 500;
/// How many packets ahead of its delivery memory is prefetched: the packet, the receiver's slot,
/// the endpoint, and what the endpoint points to. Each needs what the one before has fetched.
const PREFETCH_DISTANCE: [usize; 4] = [28, 16, 10, 4];

/// The state of a port. One cache line, as with many flows every packet misses the caches here.
#[repr(align(64))]
struct PortSlot<E> {
    /// The endpoint; at its first port only.
    endpoint: Option<E>,
    /// The endpoint's timer; at its first port only.
    timer: EndpointTimer,
    /// Route of packets to this port.
    incoming: RouteId,
    /// First link of the route of packets from this port.
    outgoing: LinkId,
    /// The port's number within its endpoint.
    port: u8,
}

const _: () = assert!(size_of::<PortSlot<crate::host::AnyHost>>() == 64, "one cache line");

impl<E> HasTimer for PortSlot<E> {
    #[inline]
    fn timer(&self) -> &EndpointTimer {
        &self.timer
    }

    #[inline]
    fn timer_mut(&mut self) -> &mut EndpointTimer {
        &mut self.timer
    }
}

impl<E> PortSlot<E> {
    #[inline]
    fn endpoint(&self) -> &E {
        self.endpoint.as_ref().expect("the first port has the endpoint")
    }

    #[inline]
    fn endpoint_mut(&mut self) -> &mut E {
        self.endpoint.as_mut().expect("the first port has the endpoint")
    }
}

impl<E, O> Engine<E, O>
where
    E: SimEndpoint,
    E::Packet: Packet + Copy,
    O: Observer<E::Packet>,
{
    /// The maximum number of ports.
    pub const MAX_PORTS: usize = 1 << 24;

    /// An engine at time zero, with endpoints of one port each and their routes. An endpoint starts
    /// at its first timeout.
    ///
    /// # Panics
    /// As [`Engine::with_ports`].
    pub fn new(
        links: Vec<Link<RoutedPacket<E::Packet>>>,
        routes: Routes,
        endpoints: impl IntoIterator<Item = (E, RouteId)>,
        observer: O,
    ) -> Engine<E, O> {
        let (endpoints, routes_of): (Vec<E>, Vec<RouteId>) = endpoints.into_iter().unzip();
        Engine::with_ports(links, routes, endpoints, &routes_of, observer)
    }

    /// An engine whose endpoints have any number of ports; `routes_of` is the route of every port
    /// by number. Further ports are vacant: endpoints come later ([`open`](Self::open)).
    ///
    /// # Panics
    /// If the endpoints are not in pairs with equal numbers of ports, if there is not one route per
    /// port at least, if there are more than [`Engine::MAX_PORTS`] ports, or if a route has no
    /// links.
    pub fn with_ports(
        mut links: Vec<Link<RoutedPacket<E::Packet>>>,
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
            assert_eq!(one.ports(), other.ports(), "peers have equal numbers of ports");
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
                        timer: EndpointTimer::new(due),
                        // Ports 2i and 2i + 1 exchange packets.
                        incoming: routes_of[number ^ 1],
                        outgoing: first.expect("a route has at least one link"),
                        port,
                    });
                }
            }
        }
        assert!(slots.len() <= routes_of.len(), "a port has a route");
        for number in slots.len()..routes_of.len() {
            let first = routes.hop(routes_of[number], 0);
            slots.push(PortSlot {
                endpoint: None,
                timer: EndpointTimer::new(Time::MAX),
                incoming: routes_of[number ^ 1],
                outgoing: first.expect("a route has at least one link"),
                port: 0,
            });
        }
        let arrivals = LinkArrivals::new(links.len(), None);
        let timers = Timers::new(&mut slots);
        links.iter_mut().for_each(Link::record_discarded);
        let prefetch_enabled = slots.len() >= PREFETCH_MIN_PORTS;
        let (now, events) = (Time::ZERO, 0);
        Engine { now, events, arrivals, timers, links, routes, slots, prefetch_enabled, observer }
    }

    /// Draws the order of packets that arrive from several links at the same nanosecond, from this seed;
    /// before the run. Without a seed the link with the lowest number comes first.
    #[must_use]
    pub fn with_ties(mut self, seed: Option<u64>) -> Self {
        self.arrivals = LinkArrivals::new(self.links.len(), seed);
        self
    }

    /// Gives a vacant pair of ports its endpoints, which start at their first timeout.
    pub fn open(&mut self, pair: u32, ends: [E; 2]) {
        for (endpoint, number) in ends.into_iter().zip(2 * pair..) {
            let slot = &mut self.slots[number as usize];
            let due = endpoint.next_timeout();
            slot.endpoint = Some(endpoint);
            self.timers.set(slot, number, self.now, due);
        }
    }

    /// Removes the endpoints of a pair of ports. Packets that are still on their way are dropped.
    pub fn close(&mut self, pair: u32) {
        for number in [2 * pair, 2 * pair + 1] {
            let slot = &mut self.slots[number as usize];
            slot.endpoint = None;
            self.timers.set(slot, number, self.now, Time::MAX);
        }
    }

    /// Runs all events up to and including `end`.
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
            // Both kinds of events end in one call, as the code behind it fills the instruction cache.
            let is_arrival = arrival <= due;
            let woken = match is_arrival {
                true => self.handle_arrival(link),
                false => self.handle_timer(port),
            };
            if let Some(id) = woken {
                self.poll_endpoint(id);
                if !is_arrival {
                    self.timers.finish_expiry(&self.slots[port as usize], port);
                }
            }
        }
        self.now = self.now.max(end);
    }

    /// The current time.
    pub fn now(&self) -> Time {
        self.now
    }

    /// The number of events so far: arrivals from links and expired timers.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Whether a port has an endpoint; it may be vacant.
    pub fn has_endpoint(&self, id: EndpointId) -> bool {
        self.slots[self.first_port(id).0 as usize].endpoint.is_some()
    }

    /// The endpoint of a port.
    #[inline]
    pub fn endpoint(&self, id: EndpointId) -> &E {
        self.slots[self.first_port(id).0 as usize].endpoint()
    }

    /// Counters and backlog of a link at the current time.
    pub fn link_statistics(&mut self, id: LinkId) -> LinkStatistics {
        let statistics = self.links[id.0 as usize].statistics(self.now);
        self.report_discarded(id);
        statistics
    }

    /// The number of packets on all links.
    pub fn in_transit(&self) -> usize {
        self.links.iter().map(Link::len).sum()
    }

    /// The observer.
    pub fn observer(&self) -> &O {
        &self.observer
    }

    /// The observer, for taking results out of it.
    pub fn observer_mut(&mut self) -> &mut O {
        &mut self.observer
    }

    /// The time of the next event; `None` if there is none.
    pub fn next_event(&mut self) -> Option<Time> {
        let next = self.arrivals.first().0.min(self.timers.first(&mut self.slots).0);
        (next < Time::MAX).then_some(next)
    }

    /// Sends a packet from a port now; for packets that do not come from [`poll`](Endpoint::poll).
    pub fn send(&mut self, from: EndpointId, packet: E::Packet) {
        let first = self.slots[from.0 as usize].outgoing;
        self.forward(first, Routing::new(from), &packet);
    }

    /// Ends the run and returns the observer.
    pub fn into_observer(self) -> O {
        self.observer
    }

    /// Moves a packet that arrives from a link to the next link or to its receiver; returns the endpoint
    /// that received it.
    #[inline(always)]
    fn handle_arrival(&mut self, number: u32) -> Option<EndpointId> {
        let link = &mut self.links[number as usize];
        let Some(&routed) = link.first_delivered(self.now) else {
            self.finish_arrival(number);
            return None;
        };
        link.remove_first(self.now);
        self.finish_arrival(number);
        if self.prefetch_enabled {
            self.prefetch_next(number as usize);
        }
        let (to, routing) = (routed.to(), routed.routing.next_hop());
        let route = self.slots[to.0 as usize].incoming;
        match self.routes.hop(route, routing.hop()) {
            Some(next) => {
                self.forward(next, routing, &routed.packet);
                None
            }
            None => self.deliver(to, &routed.packet),
        }
    }

    /// Sets when a link delivers its next packet, after it was asked for one.
    #[inline(always)]
    fn finish_arrival(&mut self, number: u32) {
        let link = &self.links[number as usize];
        self.arrivals.set(number, link.next_arrival());
        if link.has_discarded() {
            self.report_discarded(LinkId(number));
        }
    }

    /// Prefetches memory of the next receivers behind a link.
    #[inline]
    fn prefetch_next(&mut self, number: usize) {
        let Some([routed, slot, endpoint, indirect]) = self.links[number].peek(PREFETCH_DISTANCE)
        else {
            return;
        };
        prefetch(routed);
        prefetch(&self.slots[slot.to().0 as usize]);
        let to = endpoint.to();
        if let Some(endpoint) = &self.slots[to.0 as usize].endpoint {
            endpoint.prefetch();
        }
        self.observer.prefetch(to);
        let to = indirect.to();
        if let Some(endpoint) = &self.slots[to.0 as usize].endpoint {
            endpoint.prefetch_indirect();
        }
        self.observer.prefetch_indirect(to);
    }

    /// Pushes a packet onto a link. Inlined, like all code that builds TCP's packets, so that a
    /// packet is written field by field to its place on the link. A copy of just-written fields
    /// would stall on store forwarding.
    #[inline(always)]
    fn forward(&mut self, to: LinkId, routing: Routing, packet: &E::Packet) {
        let link = &mut self.links[to.0 as usize];
        let (was_final, may_discard) = (link.next_arrival_is_final(), link.may_discard());
        match link.push(self.now, RoutedPacket { routing, packet: *packet }) {
            Ok(()) => {
                if !was_final {
                    self.arrivals.set(to.0, link.next_arrival());
                }
                self.observer.on_entered(self.now, routing.from(), routing.hop(), to, packet);
            }
            Err(why) => self.observer.on_dropped(self.now, routing.from(), to, why, packet),
        }
        if may_discard && self.links[to.0 as usize].has_discarded() {
            self.report_discarded(to);
        }
    }

    /// Reports the packets that a link dropped after it had accepted them.
    #[cold]
    #[inline(never)]
    fn report_discarded(&mut self, id: LinkId) {
        while let Some((at, why, routed)) = self.links[id.0 as usize].take_discarded() {
            self.observer.on_dropped(at, routed.from(), id, why, &routed.packet);
        }
    }

    /// Gives a packet to its receiver; returns that.
    #[inline(always)]
    fn deliver(&mut self, to: EndpointId, packet: &E::Packet) -> Option<EndpointId> {
        self.observer.on_delivered(self.now, to, packet);
        let port = self.slots[to.0 as usize].port;
        let id = to.first(port);
        let endpoint = self.slots[id.0 as usize].endpoint.as_mut()?;
        endpoint.handle_on_port(self.now, port, packet);
        Some(id)
    }

    /// The first port of the endpoint of this port.
    #[inline]
    fn first_port(&self, id: EndpointId) -> EndpointId {
        id.first(self.slots[id.0 as usize].port)
    }

    /// Handles a timer event; returns the endpoint whose timer expired.
    fn handle_timer(&mut self, port: u32) -> Option<EndpointId> {
        let expired = self.timers.expire(&mut self.slots[port as usize], port, self.now);
        expired.then_some(EndpointId(port))
    }

    /// Sends all that an endpoint has to send, and sets its timer.
    #[inline(always)]
    fn poll_endpoint(&mut self, id: EndpointId) {
        loop {
            let slot = &mut self.slots[id.0 as usize];
            let Some(packet) = slot.endpoint_mut().poll(self.now) else { break };
            let (from, link) = match slot.endpoint().outgoing_port() {
                0 => (id, slot.outgoing),
                port => {
                    let from = EndpointId(id.0 + 2 * u32::from(port));
                    (from, self.slots[from.0 as usize].outgoing)
                }
            };
            self.observer.on_sent(self.now, from, &packet);
            self.forward(link, Routing::new(from), &packet);
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
