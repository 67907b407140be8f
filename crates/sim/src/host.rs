//! Hosts: the endpoints of all protocols.
//!
//! Scenarios of plain TCP flows, the most frequent ones, run with hosts and packets of TCP only, so
//! that they do not pay for the size of other protocols.

use crate::datagram_host::{DatagramHost, EndpointLog};
use crate::multipath_host::MultipathHost;
use crate::pdu::{Pdu, SimPacket};
use crate::sample::Sampled;
use crate::sim_endpoint::SimEndpoint;
use crate::tables::{FlowRow, FrameRow, SeriesRow};
use crate::tcp_host::TcpHost;
use crate::udp_host::UdpHost;
use crate::udt_host::UdtHost;
use dumbbell_cc::Metric;
use dumbbell_net::Endpoint;
use dumbbell_units::Time;
use std::sync::Arc;

/// One end of a flow of any protocol.
pub(crate) enum AnyHost {
    Tcp(TcpHost),
    Udt(Box<UdtHost>),
    Multipath(Box<MultipathHost>),
    Udp(Box<UdpHost>),
    Datagram(Box<DatagramHost>),
}

/// The host types that a run can consist of.
pub(crate) trait SimHost: SimEndpoint<Packet: SimPacket> + Sampled {
    /// Converts a host, which must be of this type.
    fn from_host(host: AnyHost) -> Self;
}

impl SimHost for AnyHost {
    fn from_host(host: AnyHost) -> AnyHost {
        host
    }
}

impl SimHost for TcpHost {
    fn from_host(host: AnyHost) -> TcpHost {
        match host {
            AnyHost::Tcp(host) => host,
            _ => unreachable!("all flows of the scenario are plain TCP"),
        }
    }
}

/// Calls the same method on the host of any protocol.
macro_rules! forward {
    ($self:ident, $host:ident => $call:expr) => {
        match $self {
            AnyHost::Tcp($host) => $call,
            AnyHost::Udt($host) => $call,
            AnyHost::Multipath($host) => $call,
            AnyHost::Udp($host) => $call,
            AnyHost::Datagram($host) => $call,
        }
    };
}

impl Endpoint for AnyHost {
    type Packet = Pdu;

    #[inline]
    fn handle(&mut self, now: Time, packet: &Pdu) {
        self.handle_on_port(now, 0, packet);
    }

    #[inline(always)]
    fn poll(&mut self, now: Time) -> Option<Pdu> {
        match self {
            AnyHost::Tcp(host) => host.poll(now).map(Pdu::Tcp),
            AnyHost::Udt(host) => host.poll(now).map(Pdu::Udt),
            AnyHost::Multipath(host) => host.poll(now).map(Pdu::Tcp),
            AnyHost::Udp(host) => host.poll(now).map(Pdu::Tcp),
            AnyHost::Datagram(host) => host.poll(now).map(Pdu::Datagram),
        }
    }

    #[inline]
    fn next_timeout(&self) -> Time {
        forward!(self, host => host.next_timeout())
    }
}

impl SimEndpoint for AnyHost {
    fn ports(&self) -> u8 {
        forward!(self, host => host.ports())
    }

    #[inline(always)]
    fn handle_on_port(&mut self, now: Time, port: u8, packet: &Pdu) {
        match (self, packet) {
            (AnyHost::Tcp(host), Pdu::Tcp(segment)) => host.handle(now, segment),
            (AnyHost::Udt(host), Pdu::Udt(packet)) => host.handle(now, packet),
            (AnyHost::Multipath(host), Pdu::Tcp(segment)) => {
                host.handle_on_port(now, port, segment)
            }
            (AnyHost::Udp(host), Pdu::Tcp(packet)) => host.handle(now, packet),
            (AnyHost::Datagram(host), Pdu::Datagram(datagram)) => host.handle(now, datagram),
            _ => unreachable!("both ends of a flow speak one protocol"),
        }
    }

    #[inline]
    fn outgoing_port(&self) -> u8 {
        forward!(self, host => host.outgoing_port())
    }

    #[inline]
    fn prefetch(&self) {
        forward!(self, host => host.prefetch());
    }

    #[inline]
    fn prefetch_indirect(&self) {
        forward!(self, host => host.prefetch_indirect());
    }
}

impl Sampled for AnyHost {
    fn sample(&self, row: &mut SeriesRow) {
        forward!(self, host => host.sample(row));
    }

    fn finish(&self, row: &mut FlowRow) {
        forward!(self, host => host.finish(row));
    }

    fn inspect(&self, show: &mut dyn FnMut(Metric)) {
        forward!(self, host => host.inspect(show));
    }

    fn is_complete(&self) -> bool {
        forward!(self, host => host.is_complete())
    }

    fn frames(&self, push: &mut dyn FnMut(FrameRow)) {
        forward!(self, host => host.frames(push));
    }

    fn failure(&self) -> Option<(Time, String)> {
        forward!(self, host => host.failure())
    }

    fn log(&self) -> Option<Arc<dyn EndpointLog>> {
        forward!(self, host => host.log())
    }

    fn subflows(&self) -> u8 {
        forward!(self, host => host.subflows())
    }

    fn sample_subflow(&self, subflow: u8, row: &mut SeriesRow) {
        forward!(self, host => host.sample_subflow(subflow, row));
    }

    fn finish_subflow(&self, subflow: u8, row: &mut FlowRow) {
        forward!(self, host => host.finish_subflow(subflow, row));
    }

    fn inspect_subflow(&self, subflow: u8, show: &mut dyn FnMut(Metric)) {
        forward!(self, host => host.inspect_subflow(subflow, show));
    }
}
